"""Alter the sections of a derived file and give it checksums that fit."""

from __future__ import annotations

from pathlib import Path

PAGE_BYTES = 16 * 1024
TRAILER_BYTES = 40
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
PRIMES_32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
PRIMES_64 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
MASK = (1 << 64) - 1
SHORTEST = 241
STRIPE = 64
STRIPES_OF_BLOCK = (len(SECRET) - STRIPE) // 8


def _lanes(data: bytes, at: int, count: int = 8) -> list[int]:
    return [int.from_bytes(data[at + 8 * lane : at + 8 * lane + 8], "little") for lane in range(count)]


def _accumulate(sums: list[int], data: bytes, at: int, secret_at: int) -> None:
    for lane, (value, key) in enumerate(zip(_lanes(data, at), _lanes(SECRET, secret_at), strict=True)):
        mixed = value ^ key
        sums[lane ^ 1] = (sums[lane ^ 1] + value) & MASK
        sums[lane] = (sums[lane] + (mixed & 0xFFFFFFFF) * (mixed >> 32)) & MASK


def _merged(sums: list[int], secret_at: int, start: int) -> int:
    for pair, keys in enumerate(range(secret_at, secret_at + 64, 16)):
        one, other = _lanes(SECRET, keys, 2)
        product = (sums[2 * pair] ^ one) * (sums[2 * pair + 1] ^ other)
        start = (start + ((product & MASK) ^ (product >> 64))) & MASK
    start = (start ^ (start >> 37)) * 0x165667919E3779F9 & MASK
    return start ^ (start >> 32)


def _sums(data: bytes) -> list[int]:
    assert len(data) >= SHORTEST, "a shorter text has another hash"
    sums = [PRIMES_32[2], *PRIMES_64[:4], PRIMES_32[1], PRIMES_64[4], PRIMES_32[0]]
    last_secret = len(SECRET) - STRIPE
    stripes = (len(data) - 1) // STRIPE
    for stripe in range(stripes):
        place = stripe % STRIPES_OF_BLOCK
        _accumulate(sums, data, stripe * STRIPE, place * 8)
        if place == STRIPES_OF_BLOCK - 1:
            for lane, key in enumerate(_lanes(SECRET, last_secret)):
                sums[lane] = (sums[lane] ^ (sums[lane] >> 47) ^ key) * PRIMES_32[0] & MASK
    _accumulate(sums, data, len(data) - STRIPE, last_secret - 7)
    return sums


def xxh3_64(data: bytes) -> int:
    """XXH3-64 of a text of more than 240 bytes."""
    return _merged(_sums(data), 11, len(data) * PRIMES_64[0] & MASK)


def xxh3_128(data: bytes) -> int:
    """XXH3-128 of a text of more than 240 bytes."""
    sums = _sums(data)
    low = _merged(sums, 11, len(data) * PRIMES_64[0] & MASK)
    high = _merged(sums, len(SECRET) - STRIPE - 11, ~(len(data) * PRIMES_64[1]) & MASK)
    return high << 64 | low


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def sections(path: Path) -> dict[int, range]:
    """Say where each section of a file lies."""
    data = path.read_bytes()
    start = _number(data, len(data) - TRAILER_BYTES)
    found = {}
    for place in range(start + 24, start + 24 + 24 * _number(data, start), 24):
        first = _number(data, place + 8)
        found[_number(data, place)] = range(first, first + _number(data, place + 16))
    return found


def forge(path: Path, old: bytes, new: bytes) -> None:
    """Replace bytes of the sections of a file, and the checksums that no longer fit."""
    assert len(old) == len(new)
    data = bytearray(path.read_bytes())
    trailer = len(data) - TRAILER_BYTES
    start = _number(data, trailer)
    pages_at = start + 24 + 24 * _number(data, start)
    changed = set()
    at = data.find(old, 0, start)
    assert at >= 0, "nothing to replace"
    while at >= 0:
        changed |= {at // PAGE_BYTES, (at + len(old) - 1) // PAGE_BYTES}
        at = data.find(old, at + len(old), start)
    before = {page: bytes(data[page * PAGE_BYTES : min(start, (page + 1) * PAGE_BYTES)]) for page in changed}
    data[:start] = data[:start].replace(old, new)
    for page, was in before.items():
        place = pages_at + 8 * page
        assert _number(data, place) == xxh3_64(was), "the checksum of a page"
        now = bytes(data[page * PAGE_BYTES : page * PAGE_BYTES + len(was)])
        data[place : place + 8] = xxh3_64(now).to_bytes(8, "little")
    data[trailer + 16 : trailer + 32] = xxh3_128(bytes(data[start : trailer + 16])).to_bytes(16, "little")
    path.write_bytes(data)
