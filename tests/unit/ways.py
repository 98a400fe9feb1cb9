"""The three ways to append, for claims that hold for each of them."""

from typing import Any

from penstock import Queue

WAYS = ["append", "append_many", "transaction"]


def append_by(queue: Queue, way: str, *payloads: Any, **options: Any) -> None:
    """Append the payloads in one of the ways."""
    if way == "append":
        # One after the other: who wants all or none takes another way.
        for payload in payloads:
            queue.append(payload, **options)
    elif way == "append_many":
        queue.append_many(payloads, **options)
    else:
        with queue.transaction() as together:
            for payload in payloads:
                together.append(payload, **options)


def append_last_by(queue: Queue, way: str, payload: Any, **options: Any) -> None:
    """Append a payload as the last of those that are appended at once, the others being good."""
    good = [] if way == "append" else [b"good"]
    append_by(queue, way, *good, payload, **options)
