"""Several appends that become one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING

from penstock.kernel import Writer, encode_attributes
from penstock.message import Priority

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self


class Transaction:
    """Several appends that become one at the end of a `with`; none of them if it raises."""

    def __init__(self, writer: Writer, owner: object) -> None:
        self._writer = writer
        self._owner = owner
        self._pairs: list[tuple[bytes, bytes]] | None = None
        self._is_over = False
        self.sequences: range | None = None
        """The sequences of the messages, once they are appended."""

    def append(
        self,
        payload: Buffer,
        *,
        key: Buffer | None = None,
        headers: Mapping[str, str] | None = None,
        ttl: timedelta | None = None,
        deliver_after: timedelta | None = None,
        priority: Priority | None = None,
    ) -> None:
        """Add a message to those that are appended together."""
        if self._pairs is None:
            raise RuntimeError("append inside a `with queue.transaction() as together:` block")
        attributes = encode_attributes(
            payload,
            key=key,
            headers=headers,
            ttl=ttl,
            deliver_after=deliver_after,
            priority=priority,
        )
        # What the caller does to a buffer afterwards does not change what was appended.
        kept = payload if isinstance(payload, bytes) else bytes(memoryview(payload))
        self._pairs.append((kept, attributes))

    def __enter__(self) -> Self:
        if self._is_over:
            raise RuntimeError("this transaction is over: begin another with queue.transaction()")
        self._pairs, self._is_over = [], True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pairs, self._pairs = self._pairs, None
        if kind is None and pairs is not None:
            self.sequences = self._writer.append_pairs(pairs)
