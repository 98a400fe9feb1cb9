"""What can happen to a file of a queue while nobody looks."""

from pathlib import Path

from tests.crash.editing import fill_with_garbage, zero


def missing(path: Path) -> None:
    """Delete the file."""
    path.unlink()


def cut(path: Path) -> None:
    """Leave the first bytes of the file."""
    path.write_bytes(path.read_bytes()[:200])


def zero_length(path: Path) -> None:
    """Leave nothing of the file but its name."""
    path.write_bytes(b"")


def grown(path: Path) -> None:
    """Put bytes behind the file's end."""
    path.write_bytes(path.read_bytes() + bytes(4096))


def copied(path: Path) -> None:
    """Leave the same bytes in another file."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def of_zeros(path: Path) -> None:
    """Leave zeros in place of all bytes."""
    zero(path, 0)


DAMAGES = [missing, cut, zero_length, grown, copied, of_zeros, fill_with_garbage]
