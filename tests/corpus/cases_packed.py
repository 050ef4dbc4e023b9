"""Packed archives, made frame by frame by hand: no compressor may change a verdict."""

from typing import Any

from cases_base import Store
from craft import Case, Chain, one, sha256

MASK = 2**64 - 1
PRIMES = (11400714785074694791, 14029467366897019727, 1609587929392839161)
PRIMES += (9650029242287828579, 2870177450012600261)
MAGIC = b"\x28\xb5\x2f\xfd"
MIB = 1024 * 1024
BLOCK_BYTES = 128 * 1024


def rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & MASK


def mixed(lane: int, word: int) -> int:
    return rotated((lane + word * PRIMES[1]) & MASK, 31) * PRIMES[0] & MASK


def xxh64(data: bytes) -> int:
    """The checksum of zstd frames (XXH64, seed 0)."""
    value, at = PRIMES[4], 0
    if len(data) >= 32:
        lanes = [(PRIMES[0] + PRIMES[1]) & MASK, PRIMES[1], 0, -PRIMES[0] & MASK]
        while at + 32 <= len(data):
            words = [int.from_bytes(data[at + 8 * n : at + 8 * n + 8], "little") for n in range(4)]
            lanes = [mixed(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        value = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & MASK
        for lane in lanes:
            value = ((value ^ mixed(0, lane)) * PRIMES[0] + PRIMES[3]) & MASK
    value = (value + len(data)) & MASK
    while at + 8 <= len(data):
        value ^= mixed(0, int.from_bytes(data[at : at + 8], "little"))
        value, at = (rotated(value, 27) * PRIMES[0] + PRIMES[3]) & MASK, at + 8
    if at + 4 <= len(data):
        value ^= int.from_bytes(data[at : at + 4], "little") * PRIMES[0] & MASK
        value, at = (rotated(value, 23) * PRIMES[1] + PRIMES[2]) & MASK, at + 4
    for byte in data[at:]:
        value = rotated(value ^ (byte * PRIMES[4] & MASK), 11) * PRIMES[0] & MASK
    value = (value ^ value >> 33) * PRIMES[1] & MASK
    value = (value ^ value >> 29) * PRIMES[2] & MASK
    return value ^ value >> 32


def frame(
    data: bytes, claims: int | None = None, form: bytes = b"\xa4", checksum: bytes | None = None
) -> bytes:
    """A frame of blocks that are not compressed; it may lie about what it holds."""
    pieces = [data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES)]
    heads = [len(piece) << 3 | (number == len(pieces)) for number, piece in enumerate(pieces, 1)]
    blocks = b"".join(head.to_bytes(3, "little") + piece for head, piece in zip(heads, pieces, strict=True))
    length = (len(data) if claims is None else claims).to_bytes(4, "little")
    end = (xxh64(data) & 0xFFFFFFFF).to_bytes(4, "little") if checksum is None else checksum
    return MAGIC + form + length + blocks + end


def packed(chain: Chain, content: bytes | None = None, **changes: Any) -> Store:
    """A compacted store whose archive is packed, or is what is given instead and named by its digest."""
    log, last = b"".join(chain.lines), chain.next_seq - 1
    content = frame(log) if content is None else content
    name = f"archive/1-{last}-{sha256(content)[:16]}.wal.zst"
    store = Store(chain).compact(archive=name, archive_sha256=sha256(content), **changes)
    del store.files[store.named("archive")]
    store.files[name] = content
    return store


def one_record_repeated() -> bytes:
    """A block that says: this byte, a million times."""
    return (
        MAGIC + b"\xa4" + MIB.to_bytes(4, "little") + (BLOCK_BYTES << 3 | 3).to_bytes(3, "little") + b"x1234"
    )


def cases() -> list[Case]:
    log = b"".join(Chain().add_many(3).lines)
    good = packed(Chain().add_many(3))
    name = good.named("archive")
    longer = {**good.files, name: good.files[name] + b"\0"}
    plain_first = Store(Chain().add_many(3)).compact()
    plain_first.chain.add()
    after_plain = packed(plain_first.chain)
    after_plain.files |= plain_first.files
    older = next(path for path in after_plain.files if path.endswith(".wal"))
    older_longer = {**after_plain.files, older: after_plain.files[older] + b"\n"}
    broken = packed(one().put(b"garbage\n").add())
    altered, second_line = "archive-altered", ("archive-altered", len(one().lines[0]))
    wrong = {
        "garbage": (b"not a frame at all", "not packed, though its name says so"),
        "empty": (b"", "no frame at all"),
        "cut": (frame(log)[:-1], "the last byte of the checksum is gone"),
        "trailing": (frame(log) + b"\0", "bytes behind the last frame"),
        "checksum": (frame(log, checksum=b"\0\0\0\0"), "the checksum is another"),
        "claims_more": (frame(log, claims=len(log) + 1), "it says that it holds one byte more"),
        "claims_less": (frame(log, claims=len(log) - 1), "it says that it holds one byte less"),
        "claims_a_lot": (frame(log, claims=2**32 - 1), "four gibibytes, says the header"),
        "claims_too_much": (frame(log, claims=MIB + 1), "more than one mebibyte"),
        "claims_nothing": (frame(log, claims=0), "nothing, says the header"),
        "swells": (one_record_repeated(), "one byte that stands for many, and fewer than the header says"),
        "no_checksum": (frame(log, form=b"\xa0", checksum=b""), "frames without a checksum are not ours"),
        "dictionary": (frame(log, form=b"\xa5"), "frames with a dictionary are not ours"),
        "skippable": (b"\x50\x2a\x4d\x18\0\0\0\0" + frame(log), "a frame that decoders pass over"),
        "short_frame": (frame(log[:100]) + frame(log[100:]), "only the last frame may be short"),
    }
    return [
        good.case("packed", "anchored", "an archive in zstd frames"),
        good.case("packed_longer", "anchored", "another digest", altered, files=longer),
        after_plain.case("packed_after_plain", "anchored", "an older archive is plain"),
        after_plain.case("packed_older_altered", "anchored", "found behind it", altered, files=older_longer),
        broken.case("packed_broken", "anchored", "at the offset in the log inside", second_line),
        packed(Chain().add_many(3), previous_head="ab" * 32).case(
            "packed_head", "anchored", "leads elsewhere", altered
        ),
        *(
            packed(Chain().add_many(3), content).case(f"packed_{what}", "anchored", note, altered)
            for what, (content, note) in wrong.items()
        ),
    ]
