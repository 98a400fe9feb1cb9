"""A whole queue as text that people can read and git can compare.

`python -m tests.format.golden FOLDER` prints the text of a closed queue.
"""

import sys
from pathlib import Path

LINE = 32
# These hold only while this machine runs.
FLEETING = {".control", ".lock", ".spare"}


def text_of(folder: Path) -> str:
    """Write each file as its name and length, and its bytes but for lines of zeros."""
    lines = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in FLEETING:
            content = path.read_bytes()
            lines.append(f"file {path.relative_to(folder)} {len(content)}")
            for at in range(0, len(content), LINE):
                part = content[at : at + LINE]
                if any(part):
                    lines.append(f"{at:8} {part.hex(' ', 4)}")
    return "\n".join(lines) + "\n"


def restore(text: str, folder: Path) -> None:
    """Make the files that a text tells of."""
    files: dict[Path, bytearray] = {}
    content = bytearray()
    for line in text.splitlines():
        first, *rest = line.split()
        if first == "file":
            content = files[folder / rest[0]] = bytearray(int(rest[1]))
        else:
            part = bytes.fromhex("".join(rest))
            content[int(first) : int(first) + len(part)] = part
    for path, whole in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(whole)


if __name__ == "__main__":
    print(text_of(Path(sys.argv[1])), end="")
