"""The files a reader can do without, the control page and the indexes, from docs/format.md."""

import struct
from collections.abc import Iterator
from pathlib import Path

from tests.format.checksums import CHECKSUMS
from tests.format.xxh3 import xxh3_64


def published_end(folder: Path, queue_id: bytes) -> tuple[int, int]:
    """Read number and published end of the active segment; zeros if the control page counts not."""
    path, lock = folder / ".control", folder / ".lock"
    if not path.exists() or not lock.exists():
        return 0, 0
    page = path.read_bytes()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    identity = b"PENSTCTL" + struct.pack("<II", 1, 0) + queue_id
    identity += bytes.fromhex(boot.strip().replace("-", ""))
    identity += struct.pack("<QQ", path.stat().st_ino, lock.stat().st_ino)
    if page[:64] != identity or page[120:128] != xxh3_64(page[:120]).to_bytes(8, "little"):
        return 0, 0
    number, _, position = struct.unpack_from("<QQQ", page, 384 + 128 * (page[136] & 1))
    return number, position


def read_index(data: Path) -> Iterator[tuple[int, int]]:
    """Read the index of a segment: sequences, and where their frames begin."""
    segment, index = data.read_bytes()[:4096], data.with_suffix(".index").read_bytes()
    version_and_queue, number_and_base = segment[8:12] + bytes(4) + segment[16:32], segment[512:528]
    salt, index_every = segment[32:40], segment[48:56]
    header = b"PENSTIDX" + version_and_queue + number_and_base + salt + index_every
    check = CHECKSUMS[segment[12]](index[:248]).to_bytes(8, "little")
    assert (header, check) == (index[:64], index[248:256])
    yield from struct.iter_unpack("<QQ", index[256 : len(index) // 16 * 16])
