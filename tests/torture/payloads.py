"""Payloads that say who appended them, and of which every byte can be checked."""

from __future__ import annotations

import hashlib
import struct

_IDENTITY = struct.Struct("<qQI")
# Up to so many per cent have at most so many bytes; the largest do not fit into one segment.
_SIZES = ((70, 120), (94, 1_000), (99, 9_000), (100, 100_000))


def payload_of(seed: int, producer: int, number: int) -> bytes:
    """Make the payload of one message: who and which it is, and bytes that follow from that."""
    dice = int.from_bytes(
        hashlib.blake2b(_IDENTITY.pack(producer, number, seed), digest_size=8).digest(), "little"
    )
    percent, dice = dice % 100, dice // 100
    size = dice % next(largest for share, largest in _SIZES if percent < share)
    identity = _IDENTITY.pack(producer, number, size)
    return identity + hashlib.shake_128(identity).digest(size)


def identity_of(seed: int, payload: bytes) -> tuple[int, int]:
    """Tell producer and number of a payload; (-1, 0) when it is not as it was made."""
    if len(payload) < _IDENTITY.size:
        return -1, 0
    producer, number, _ = _IDENTITY.unpack_from(payload)
    if producer < 0 or payload != payload_of(seed, producer, number):
        return -1, 0
    return producer, number
