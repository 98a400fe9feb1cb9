"""What can happen to the bytes of one file: flipped, zeroed, misdirected, cut, lost, replaced."""

import random
from collections.abc import Callable

from penstock.kernel import LAYOUT
from tests.crash.rot_corpus import Files, Specimen

SECTOR = 512
PAGE = 4096
HEADER_BYTES = LAYOUT["SEGMENT_HEADER_BYTES"]
FRAME_FIELDS = {
    "length": LAYOUT["FRAME_LENGTH_AT"],
    "kind": LAYOUT["FRAME_KIND_AT"],
    "flags": LAYOUT["FRAME_FLAGS_AT"],
    "attributes": LAYOUT["FRAME_ATTRIBUTES_AT"],
    "timestamp": LAYOUT["FRAME_TIMESTAMP_AT"],
    "content": LAYOUT["FRAME_HEAD_BYTES"],
}
# The bytes of a page that mean anything; the slots behind them tell of processes only.
PAGE_BYTES = LAYOUT["CONTROL_POISON_TEXT_AT"] + 16

Damage = Callable[[bytearray, str, random.Random], str]


def kind_of(name: str) -> str:
    """Tell what kind of file a name is of."""
    suffix = name.rpartition(".")[2]
    return {"data": "segment", "index": "index", "json": "metadata"}.get(suffix, suffix)


def likely_place(content: bytes | bytearray, name: str, rng: random.Random) -> tuple[int, str]:
    """Choose a byte that means something, and name it."""
    kind = kind_of(name)
    if kind == "control":
        return rng.randrange(min(PAGE_BYTES, len(content))), "page"
    if kind == "index":
        return rng.randrange(len(content)), "index"
    if kind in ("segment", "spare") and len(content) > HEADER_BYTES:
        places = frames(content)
        if places and rng.random() < 0.7:
            begin, end = rng.choice(places)
            field = rng.choice([*FRAME_FIELDS, "check"])
            at = end - 8 if field == "check" else begin + FRAME_FIELDS[field]
            width = min(8, end - at) if field != "content" else max(1, end - 8 - at)
            return at + rng.randrange(width), f"{field} of a frame"
        part = rng.choice([0, LAYOUT["SEGMENT_NUMBER_AT"]])
        return part + rng.randrange(80), "header"
    return rng.randrange(len(content)), kind


def frames(content: bytes | bytearray) -> list[tuple[int, int]]:
    """List where frames begin and end, the seal's too."""
    found, at = [], HEADER_BYTES
    while at + LAYOUT["FRAME_BYTES_MIN"] <= len(content):
        length = int.from_bytes(content[at : at + 4], "little")
        end = at + (length + 7) // 8 * 8 + 8
        if not length or end > len(content):
            break
        found.append((at, end))
        at = end
    return found


def flip(content: bytearray, name: str, rng: random.Random) -> str:
    """Turn one bit over."""
    at, what = likely_place(content, name, rng)
    bit = rng.randrange(8)
    content[at] ^= 1 << bit
    return f"bit {bit} of byte {at} ({what})"


def flip_some(content: bytearray, name: str, rng: random.Random) -> str:
    """Turn some bits over."""
    return ", ".join(flip(content, name, rng) for _ in range(rng.randint(2, 8)))


def scribble(content: bytearray, name: str, rng: random.Random) -> str:
    """Put random bytes somewhere."""
    at, what = likely_place(content, name, rng)
    length = min(rng.choice([1, 4, 8, 24, 100]), len(content) - at)
    content[at : at + length] = rng.randbytes(length)
    return f"{length} random bytes at {at} ({what})"


def some_sector(content: bytearray, rng: random.Random, size: int) -> int:
    """Choose a sector, where the content is rather than in the zeros behind it."""
    used = len(bytes(content).rstrip(b"\0"))
    return rng.randrange(max(1, -(-min(used, len(content)) // size))) * size


def zero_sector(content: bytearray, _name: str, rng: random.Random) -> str:
    """Leave zeros in place of a sector."""
    size = rng.choice([8, SECTOR, PAGE])
    at = some_sector(content, rng, size)
    content[at : at + size] = bytes(len(content[at : at + size]))
    return f"{size} zeros at {at}"


def copy_sector(content: bytearray, _name: str, rng: random.Random) -> str:
    """Write a sector to the place of another."""
    size = rng.choice([SECTOR, PAGE])
    source, target = (some_sector(content, rng, size) for _ in range(2))
    piece = content[source : source + size]
    content[target : target + len(piece)] = piece
    return f"{size} bytes at {source} copied to {target}"


def swap_sectors(content: bytearray, _name: str, rng: random.Random) -> str:
    """Write two sectors to each other's place."""
    one, other = (some_sector(content, rng, SECTOR) for _ in range(2))
    first, second = content[one : one + SECTOR], content[other : other + SECTOR]
    if len(first) == len(second):
        content[one : one + SECTOR], content[other : other + SECTOR] = second, first
    return f"sectors at {one} and {other} swapped"


def copy_frame(content: bytearray, name: str, rng: random.Random) -> str:
    """Write a whole frame to the place of another."""
    places = frames(content)
    if len(places) < 2:
        return flip(content, name, rng)
    (begin, end), (target, _) = rng.sample(places, 2)
    piece = content[begin:end]
    content[target : target + len(piece)] = piece
    return f"frame at {begin} copied to {target}"


def cut(content: bytearray, _name: str, rng: random.Random) -> str:
    """Shorten the file."""
    size = rng.randrange(len(content) + 1)
    if rng.random() < 0.5:
        size = size // PAGE * PAGE
    del content[size:]
    return f"cut to {size} bytes"


def grow(content: bytearray, _name: str, rng: random.Random) -> str:
    """Lengthen the file with zeros, garbage or its own bytes."""
    size = rng.choice([1, 8, 100, SECTOR, PAGE, 20000])
    more = rng.choice([bytes(size), rng.randbytes(size), (bytes(content) * size)[:size]])
    content += more
    return f"{len(more)} bytes more"


DAMAGES: list[Damage] = [
    *[flip] * 6,
    flip_some,
    scribble,
    zero_sector,
    copy_sector,
    swap_sectors,
    copy_frame,
    cut,
    grow,
]


def choose(files: Files, rng: random.Random) -> str:
    """Choose a file, each kind as often as another."""
    kinds = sorted({kind_of(name) for name in files if name != ".lock"})
    kind = rng.choice([*kinds, *["segment"] * 2 * ("segment" in kinds)])
    return rng.choice([name for name in sorted(files) if kind_of(name) == kind])


def damage(files: Files, specimen: Specimen, other: Specimen, rng: random.Random) -> str:
    """Let something happen to one of the files, and tell what."""
    name = choose(files, rng)
    lot = rng.random()
    if lot < 0.05:
        del files[name]
        return f"{name}: deleted"
    if lot < 0.1 and name in specimen.older:
        files[name] = specimen.older[name]
        return f"{name}: replaced by what it was before"
    if lot < 0.13:
        theirs = [own for own in other.files if kind_of(own) == kind_of(name)]
        if theirs:
            files[name] = other.files[rng.choice(sorted(theirs))]
            return f"{name}: replaced by one of another queue"
    if lot < 0.16:
        ours = rng.choice(sorted(files))
        files[name] = files[ours]
        return f"{name}: replaced by {ours}"
    content = bytearray(files[name])
    if not content:
        return f"{name}: is empty"
    told = rng.choice(DAMAGES)(content, name, rng)
    files[name] = bytes(content)
    return f"{name}: {told}"
