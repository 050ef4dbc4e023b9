"""Logs that show when a bad line is an unsynced tail, and when it is damage."""

import json

from craft import Case, Chain, one, synced_mark


def hash_of(line: bytes) -> str:
    return str(json.loads(line)["hash"])


def mark(lines: list[bytes], line: int, **changes: object) -> bytes:
    """What a writer leaves after syncing up to and including this line."""
    usual = {
        "offset": sum(map(len, lines[:line])),
        "first": hash_of(lines[0]),
        "head": hash_of(lines[line - 1]),
    }
    return synced_mark(**{**usual, **changes})  # type: ignore[arg-type]


def case(
    name: str,
    lines: list[bytes],
    synced: bytes,
    note: str,
    damage: list[tuple[int, str]],
    tail: int | None,
    events: int,
    *,
    damaged: bool = False,
) -> Case:
    return Case(name, lines, note, damage, tail, events, synced, damaged_synced=damaged)


def cases() -> list[Case]:
    five = Chain().add_many(5).lines
    garbage, edited = b"garbage\n", five[3].replace(b"fact 4", b"fact E")
    overwritten = b"#" * (len(five[1]) - 1) + b"\n"
    bad2, bad4 = [five[0], overwritten, *five[2:]], [*five[:3], garbage, five[4]]
    until3 = mark(five, 3)
    at_blank = [*five[:3], b"\n", garbage]
    flipped = bytes([*until3[:-1], until3[-1] ^ 1])
    unlinked = Chain().add_many(3).add(prev_hash="ab" * 32).lines
    injected = [*five[:3], five[3].replace(b'"ts":', b'"tr":1,"ts":'), five[4]]
    batch = one().begin(3).add().add().add().add().lines
    bad_batch = [*batch[:3], garbage, *batch[4:]]
    inner = [*one().begin(3).add().lines, garbage]
    closed = one().begin(3).add().begin(1).add().lines
    half = one().begin(3).add().lines
    lost_first = [garbage, *five]
    lost_head = [*five[:2], garbage, garbage]
    early = [five[0], edited, *five[2:3], garbage]
    zeros = bytes(120)
    ignored, damage4 = "synced is ignored", [(4, "unreadable")]
    far = mark(five, 5, offset=2**64 - 1)
    return [
        case("synced_all", five, mark(five, 5), "all on disk", [], None, 5),
        case(
            "synced_stale",
            five,
            mark(five, 2),
            "an older mark takes nothing away from good lines",
            [],
            None,
            5,
        ),
        case(
            "synced_tail",
            bad4,
            until3,
            "the first bad line is where the sync ended: all from it on is tail",
            [],
            4,
            3,
        ),
        case(
            "synced_tail_later", [*five[:4], garbage], until3, "good lines beyond the mark are kept", [], 5, 4
        ),
        case(
            "synced_tail_altered",
            [*five[:3], edited, five[4]],
            until3,
            "an edited line beyond the mark",
            [],
            4,
            3,
        ),
        case("synced_tail_unlinked", unlinked, mark(unlinked, 3), "a broken link beyond the mark", [], 4, 3),
        case("synced_tail_injected", injected, until3, "a field outside the hash beyond the mark", [], 4, 3),
        case(
            "synced_tail_torn",
            [*five[:3], garbage, b"{"],
            until3,
            "bad line and torn line: one tail",
            [],
            4,
            3,
        ),
        case(
            "synced_tail_blank",
            [*five[:3], b"\n", garbage],
            until3,
            "the blank line is before the tail",
            [],
            5,
            3,
        ),
        case("synced_torn", [*five[:3], b"{"], until3, "only torn", [], 4, 3),
        case("synced_damage", bad2, until3, "the bad line was synced", [(2, "unreadable")], None, 4),
        case("synced_damage_all", bad4, mark(bad4, 5), "the bad line was synced", damage4, None, 4),
        case(
            "synced_damage_early",
            early,
            mark(early, 3),
            "once there is damage, what follows is damage",
            [(2, "altered"), (4, "unreadable")],
            None,
            2,
        ),
        case(
            "synced_damage_last",
            [*five[:3], edited],
            mark([*five[:3], edited], 4),
            "the last synced line itself, its hash field intact",
            [(4, "altered")],
            None,
            3,
        ),
        case(
            "synced_head_lost",
            lost_head,
            mark(lost_head, 2, offset=sum(map(len, lost_head[:3]))),
            "the line it ends with cannot be read: " + ignored,
            [(3, "unreadable"), (4, "unreadable")],
            None,
            2,
        ),
        case("synced_checksum", bad4, flipped, ignored, damage4, None, 4, damaged=True),
        case(
            "synced_magic",
            bad4,
            mark(five, 3, magic=b"CMSYNC\x00\x02"),
            ignored,
            damage4,
            None,
            4,
            damaged=True,
        ),
        case("synced_short", bad4, until3[:-1], ignored, damage4, None, 4, damaged=True),
        case("synced_long", bad4, until3 + b"\x00", ignored, damage4, None, 4, damaged=True),
        case("synced_zeros", five, zeros, "damaged beside a whole log", [], None, 5, damaged=True),
        case("synced_empty", bad4, b"", ignored, damage4, None, 4, damaged=True),
        case("synced_empty_whole", five, b"", "empty beside a whole log", [], None, 5, damaged=True),
        case("synced_zero", bad4, mark(five, 3, offset=0), ignored, damage4, None, 4, damaged=True),
        case("synced_other_log", bad4, mark(five, 3, first="ab" * 32), ignored, damage4, None, 4),
        case("synced_other_head", bad4, mark(five, 3, head="ab" * 32), ignored, damage4, None, 4),
        case("synced_wrong_line", bad4, mark(five, 2, head=hash_of(five[2])), ignored, damage4, None, 4),
        case("synced_inside_line", bad4, mark(five, 3, offset=len(five[0]) + 9), ignored, damage4, None, 4),
        case(
            "synced_at_blank",
            at_blank,
            mark(at_blank, 3, offset=sum(map(len, at_blank[:4]))),
            "the line it ends with is blank: " + ignored,
            [(5, "unreadable")],
            None,
            3,
        ),
        case(
            "synced_beyond_end",
            bad4,
            mark(five, 3, offset=sum(map(len, bad4)) + 1),
            "the log is shorter than the last sync: a note, and " + ignored,
            damage4,
            None,
            4,
        ),
        case("synced_far_beyond_end", five[:4], far, "the largest offset: a note", [], None, 4),
        case(
            "synced_without_log",
            [],
            until3,
            "an empty log, and synced knows of one that was not",
            [(1, "log-missing")],
            None,
            0,
        ),
        case(
            "synced_blank_log",
            [b"\n", b" \t\n"],
            until3,
            "blank lines are no events: synced knows of a log that had some",
            [(1, "log-missing")],
            None,
            0,
        ),
        case(
            "synced_torn_without_log",
            [],
            until3[:-1],
            "half a synced shows nothing",
            [],
            None,
            0,
            damaged=True,
        ),
        case(
            "synced_first_lost",
            lost_first,
            mark(five, 2, offset=sum(map(len, lost_first[:3]))),
            "the first line cannot be loaded: " + ignored,
            [(1, "unreadable")],
            None,
            5,
        ),
        case(
            "synced_batch_broken",
            bad_batch,
            mark(batch, 1),
            "a batch beyond the mark that is not whole: tail from its begin",
            [],
            2,
            1,
        ),
        case(
            "synced_batch_straddles",
            bad_batch,
            mark(bad_batch, 2),
            "its begin was synced: damage",
            [(2, "broken-batch"), (4, "unreadable")],
            None,
            5,
        ),
        case(
            "synced_batch_broken_at_end",
            inner,
            mark(inner, 1),
            "damaged and not finished: tail from its begin",
            [],
            2,
            1,
        ),
        case(
            "synced_batch_closed",
            closed,
            mark(closed, 1),
            "closed by another begin: tail from the first begin",
            [],
            2,
            1,
        ),
        case("synced_batch_half", half, mark(half, 1), "half a batch is a tail anyway", [], 2, 1),
        case(
            "synced_batch_half_inside",
            half,
            mark(half, 3),
            "its begin was synced, so the batch was whole once",
            [(2, "broken-batch")],
            None,
            3,
        ),
        case(
            "synced_line_cut",
            [*five[:4], five[4][:40]],
            mark(five, 5),
            "a synced line that lost its end is damage, not a tail",
            [(5, "unreadable")],
            None,
            4,
        ),
        case(
            "synced_newline_lost",
            [*five[:4], five[4][:-1]],
            mark(five, 5),
            "even if only its newline is gone",
            [(5, "unreadable")],
            None,
            4,
        ),
        case(
            "synced_only_line_cut",
            [five[0][:40]],
            mark(five, 1),
            "a log is born complete: its first line had an end",
            [(1, "unreadable")],
            None,
            0,
        ),
        case(
            "synced_other_log_cut",
            [*five[:4], five[4][:40]],
            mark(five, 5, first="ab" * 32),
            "a mark of another log says nothing",
            [],
            5,
            4,
        ),
        case(
            "synced_batch_cut",
            [*batch[:3], batch[3][:40]],
            mark(batch, 5),
            "cut inside a batch that was synced",
            [(2, "broken-batch"), (4, "unreadable")],
            None,
            3,
        ),
    ]
