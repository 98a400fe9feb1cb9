"""The checksums that a header may name, in plain Python."""

from collections.abc import Callable

from tests.format.xxh3 import xxh3_64

CRC64_NVME_REFLECTED = 0x9A6C9329AC4BC9B5
ONES = (1 << 64) - 1


def remainder_of(value: int) -> int:
    """Divide one byte, its lowest bit first."""
    for _ in range(8):
        value = value >> 1 ^ (CRC64_NVME_REFLECTED if value & 1 else 0)
    return value


REMAINDERS = [remainder_of(value) for value in range(256)]


def crc64_nvme(data: bytes) -> int:
    """Divide all bytes, beginning and ending with the complement."""
    value = ONES
    for byte in data:
        value = value >> 8 ^ REMAINDERS[(value ^ byte) & 255]
    return value ^ ONES


# Of some bytes the first word stands apart, since it is stored last.
CHECKSUMS: dict[int, Callable[[bytes], int]] = {
    1: lambda covered: xxh3_64(covered[8:], int.from_bytes(covered[:8], "little")),
    2: crc64_nvme,
}
