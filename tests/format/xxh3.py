"""XXH3-64 with a seed in plain Python, from the public specification of xxHash."""

import struct

MASK = (1 << 64) - 1
PRIME32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
PRIME64 = (
    *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
    *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
)
PRIME_MIX = (0x165667919E3779F9, 0x9FB21C651E98DF25)
STRIPE, BLOCK = 64, 1024
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def xxh3_64(data: bytes, seed: int = 0) -> int:
    """Hash the data, each range of lengths in its own way."""
    size = len(data)
    if size <= 16:
        return short(data, seed)
    if size > 240:
        return long(data, seed)
    total = size * PRIME64[0]
    if size <= 128:
        for i in range((size - 1) // 32 + 1):
            total += mix(data, 16 * i, 32 * i, seed)
            total += mix(data, size - 16 * (i + 1), 32 * i + 16, seed)
    else:
        total += sum(mix(data, 16 * i, 16 * i, seed) for i in range(8))
        total = avalanche(total) + mix(data, size - 16, 119, seed)
        total += sum(mix(data, 16 * i, 16 * i - 125, seed) for i in range(8, size // 16))
    return avalanche(total)


def short(data: bytes, seed: int) -> int:
    """Hash up to 16 bytes."""
    size = len(data)
    if size > 8:
        low = word(data, 0) ^ (word(SECRET, 24) ^ word(SECRET, 32)) + seed & MASK
        high = word(data, size - 8) ^ (word(SECRET, 40) ^ word(SECRET, 48)) - seed & MASK
        return avalanche(
            size + int.from_bytes(low.to_bytes(8, "little"), "big") + high + fold(low, high)
        )
    if size > 3:
        seed ^= int.from_bytes((seed & 0xFFFFFFFF).to_bytes(4, "little"), "big") << 32
        both = int.from_bytes(data[-4:], "little") + (int.from_bytes(data[:4], "little") << 32)
        both ^= (word(SECRET, 8) ^ word(SECRET, 16)) - seed & MASK
        both ^= rotated(both, 49) ^ rotated(both, 24)
        both = both * PRIME_MIX[1] & MASK
        both = (both ^ (both >> 35) + size) * PRIME_MIX[1] & MASK
        return both ^ both >> 28
    if size:
        both = data[0] << 16 | data[size // 2] << 24 | data[-1] | size << 8
        secret = int.from_bytes(SECRET[:4], "little") ^ int.from_bytes(SECRET[4:8], "little")
        total = both ^ secret + seed & MASK
    else:
        total = seed ^ word(SECRET, 56) ^ word(SECRET, 64)
    total = (total ^ total >> 33) * PRIME64[1] & MASK
    total = (total ^ total >> 29) * PRIME64[2] & MASK
    return total ^ total >> 32


def long(data: bytes, seed: int) -> int:
    """Hash more than 240 bytes, stripe by stripe, in eight lanes."""
    words = struct.unpack("<24Q", SECRET)
    seeded = [value + (-seed if i % 2 else seed) & MASK for i, value in enumerate(words)]
    secret = struct.pack("<24Q", *seeded)
    lanes = [PRIME32[2], *PRIME64[:4], PRIME32[1], PRIME64[4], PRIME32[0]]
    size = len(data)
    for at in range(0, size - 1 - (size - 1) % STRIPE, STRIPE):
        accumulate(lanes, data, at, secret, at % BLOCK // 8)
        if at % BLOCK == BLOCK - STRIPE:
            for i, value in enumerate(struct.unpack_from("<8Q", secret, 128)):
                lanes[i] = (lanes[i] ^ lanes[i] >> 47 ^ value) * PRIME32[0] & MASK
    accumulate(lanes, data, size - STRIPE, secret, 121)
    keys = struct.unpack_from("<8Q", secret, 11)
    total = size * PRIME64[0]
    for i in range(0, 8, 2):
        total += fold(lanes[i] ^ keys[i], lanes[i + 1] ^ keys[i + 1])
    return avalanche(total)


def accumulate(lanes: list[int], data: bytes, at: int, secret: bytes, secret_at: int) -> None:
    """Take one stripe into the lanes."""
    keys = struct.unpack_from("<8Q", secret, secret_at)
    for i, value in enumerate(struct.unpack_from("<8Q", data, at)):
        keyed = value ^ keys[i]
        lanes[i ^ 1] = lanes[i ^ 1] + value & MASK
        lanes[i] = lanes[i] + (keyed & 0xFFFFFFFF) * (keyed >> 32) & MASK


def mix(data: bytes, at: int, secret_at: int, seed: int) -> int:
    """Mix 16 bytes with 16 of the secret."""
    low = word(data, at) ^ word(SECRET, secret_at) + seed & MASK
    return fold(low, word(data, at + 8) ^ word(SECRET, secret_at + 8) - seed & MASK)


def word(data: bytes, at: int) -> int:
    """Read eight bytes."""
    return int.from_bytes(data[at : at + 8], "little")


def fold(left: int, right: int) -> int:
    """Multiply to 128 bits and lay one half over the other."""
    product = left * right
    return product & MASK ^ product >> 64


def rotated(value: int, bits: int) -> int:
    """Rotate to the left."""
    return value << bits & MASK | value >> 64 - bits


def avalanche(value: int) -> int:
    """Spread what came in over all bits."""
    value &= MASK
    value = (value ^ value >> 37) * PRIME_MIX[0] & MASK
    return value ^ value >> 32
