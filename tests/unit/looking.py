"""What tests see of a queue: its messages, its files, and a way to damage them."""

from collections.abc import Iterable
from pathlib import Path

from penstock import Message, Queue
from penstock.kernel import LAYOUT

HEADER_BYTES = LAYOUT["SEGMENT_HEADER_BYTES"]
SEAL_BYTES = LAYOUT["SEAL_FRAME_BYTES"]
FRAME_OVERHEAD_BYTES = LAYOUT["FRAME_HEAD_BYTES"] + LAYOUT["FRAME_CHECK_BYTES"]


def payloads(messages: Iterable[Message] | Queue) -> list[bytes]:
    """List the payloads of messages, or of all that a queue holds."""
    if isinstance(messages, Queue):
        messages = messages.tailer()
    return [message.payload for message in messages]


def sequences(messages: Iterable[Message]) -> list[int]:
    """List the sequences of messages."""
    return [message.sequence for message in messages]


def data_files(path: Path) -> list[Path]:
    """List the segment files of a queue by their numbers."""
    return sorted(path.rglob("*.data"), key=lambda file: int(file.stem.partition("-")[2]))


def header_word(file: Path, name: str) -> int:
    """Read a word of a segment's header by its name in the layout."""
    at = LAYOUT[f"SEGMENT_{name}_AT"]
    return int.from_bytes(file.read_bytes()[at : at + 8], "little")


def base_sequences(path: Path) -> list[int]:
    """List the first sequence of each segment of a queue."""
    return [header_word(file, "BASE_SEQUENCE") for file in data_files(path)]


def frame_bytes(payload: bytes) -> int:
    """Tell what a payload without attributes takes on the disk."""
    return FRAME_OVERHEAD_BYTES + -(-len(payload) // 8) * 8


def flip(file: Path, position: int, bits: int = 1) -> None:
    """Change some bits of one byte of a file."""
    with file.open("r+b") as opened:
        opened.seek(position)
        byte = opened.read(1)[0]
        opened.seek(position)
        opened.write(bytes([byte ^ bits]))


def tree(path: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Tell of everything below a folder its mode, size, time of change and content."""
    found = {}
    for place in [path, *sorted(path.rglob("*"))]:
        facts = place.stat()
        content = place.read_bytes() if place.is_file() else b""
        name = str(place.relative_to(path))
        found[name] = (facts.st_mode, facts.st_size, facts.st_mtime_ns, content)
    return found
