"""The checksums of the second reader are those of their public specifications."""

import pytest

from tests.format.checksums import crc64_nvme
from tests.format.xxh3 import MASK, xxh3_64

PRIME64 = 0x9E3779B185EBCA8D


def sanity_bytes(count: int) -> bytes:
    """Make the bytes that xxHash's own tests hash."""
    values = bytearray()
    generator = 0x9E3779B1
    for _ in range(count):
        values.append(generator >> 56)
        generator = generator * PRIME64 & MASK
    return bytes(values)


@pytest.mark.parametrize(
    ("length", "unseeded", "seeded"),
    [
        (0, 0x2D06800538D394C2, 0xA8A6B918B2F0364A),
        (1, 0xC44BDFF4074EECDB, 0x032BE332DD766EF8),
        (6, 0x27B56A84CD2D7325, 0x84589C116AB59AB9),
        (12, 0xA713DAF0DFBB77E7, 0xE7303E1B2336DE0E),
        (24, 0xA3FE70BF9D3510EB, 0x850E80FC35BDD690),
        (48, 0x397DA259ECBA1F11, 0xADC2CBAA44ACC616),
        (80, 0xBCDEFBBB2C47C90A, 0xC6DD0CB699532E73),
        (195, 0xCD94217EE362EC3A, 0xBA68003D370CB3D9),
        (403, 0xCDEB804D65C6DEA4, 0x6259F6ECFD6443FD),
        (512, 0x617E49599013CB6B, 0x3CE457DE14C27708),
        (2048, 0xDD59E2C3A5F038E0, 0x66F81670669ABABC),
        (2240, 0x6E73A90539CF2948, 0x757BA8487D1B5247),
        (2367, 0xCB37AEB9E5D361ED, 0xD2DB3415B942B42A),
    ],
)
def test_xxh3_is_that_of_xxhash(length, unseeded, seeded):
    """One length for each way that the algorithm goes."""
    content = sanity_bytes(length)

    assert (unseeded, seeded) == (xxh3_64(content), xxh3_64(content, PRIME64))


def test_crc64_is_that_of_the_catalogue():
    """The check value of CRC-64/NVME."""
    assert 0xAE8B14860A799888 == crc64_nvme(b"123456789")
