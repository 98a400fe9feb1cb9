"""The one door to the compiled module: its names, its constants, and what it needs to run."""

from __future__ import annotations

import sys
import warnings

if not sys.platform.startswith("linux"):
    raise ImportError(
        f"Penstock runs on Linux, and this is {sys.platform}: "
        "use a Linux machine, a container or WSL 2"
    )

from penstock._kernel import (
    COLUMNS,
    LAYOUT,
    PROFILE,
    VERSION,
    Appender,
    Batch,
    Control,
    Keeper,
    Message,
    Segment,
    Tailer,
    Writer,
    allocate,
    begun_header,
    encode_attributes,
    forked,
    index_header,
    lock_byte,
    prepared_capacity,
    prepared_header,
    segment_bytes_for,
)

__all__ = [
    "COLUMNS",
    "LAYOUT",
    "PROFILE",
    "VERSION",
    "Appender",
    "Batch",
    "Control",
    "Keeper",
    "Message",
    "Segment",
    "Tailer",
    "Writer",
    "allocate",
    "begun_header",
    "encode_attributes",
    "forked",
    "index_header",
    "lock_byte",
    "prepared_capacity",
    "prepared_header",
    "segment_bytes_for",
]

if PROFILE == "debug":
    warnings.warn(
        "this Penstock kernel was built for debugging and is far slower: build with --release",
        RuntimeWarning,
        stacklevel=2,
    )
