"""Logs that another took the place of, and logs that only seem to be such."""

from cases_base import Store, folder_case, state_file
from cases_synced import mark
from craft import Case, Chain, own_line, sha256

ASIDE = "quarantine/20260101T000000-before-restore"
MISSING = "log-missing"


def by_compaction() -> list[Case]:
    old = Chain().add_many(3).lines
    store = Store(Chain().add_many(3)).compact()
    store.chain.add()
    new, files = store.chain.lines, store.files
    synced = {"synced": mark(new, 2)}
    base = store.named("base")
    altered = {**files, base: files[base] + b" "}
    dropped = Store(Chain().add_many(3)).compact(keep=False)
    twice = Store(Chain().add_many(3)).compact()
    first = twice.chain.add().lines
    twice.compact()
    sentinel = Chain().add_many(3)
    foreign = Chain().add(op="compact", record_id="__compact__", record={"id": "__compact__"}).add_many(2)
    snapshot = {"snapshot.json": state_file(0, "", [])}
    dated = state_file(9, "", []).replace(b'"records"', b'"moments":[7],"records"')
    unsound = {"base/" + sha256(dated) + ".json": dated}
    older = {"base/" + sha256(early := state_file(0, "", [])) + ".json": early}
    both = folder_case(
        "replaced_line_before", [old[0], *new], files | synced, "none", "the log is there, behind an old line"
    )
    both.damage = [(2, "unlinked")]
    return [
        folder_case(
            "replaced_by_compaction", old, files | synced, "none", "retired: the new one is gone", MISSING
        ),
        folder_case(
            "replaced_shorter", old[:2], files | synced, "none", "a copy from long before it", MISSING
        ),
        folder_case(
            "replaced_dropped",
            old,
            dropped.files | {"synced": mark(dropped.chain.lines, 1)},
            "none",
            "no archive tells of it, the base does",
            MISSING,
        ),
        folder_case(
            "replaced_second",
            first,
            twice.files | {"synced": mark(twice.chain.lines, 1)},
            "anchored",
            "a log that began with a sentinel was retired in its turn",
            MISSING,
        ),
        folder_case(
            "replaced_interrupted", old, files | {"synced": mark(old, 3)}, "none", "the hint is of this log"
        ),
        folder_case("replaced_without_hint", old, files, "none", "nothing tells that it was replaced"),
        folder_case(
            "replaced_other_hint",
            old,
            {"synced": mark(new, 2)},
            "none",
            "a hint of another log, and nothing else: it is ignored",
        ),
        folder_case("replaced_base_altered", old, altered | synced, "none", "such a base shows nothing"),
        folder_case("replaced_base_unsound", old, unsound | synced, "none", "nor does one that is no state"),
        folder_case(
            "replaced_base_older", sentinel.lines, older | synced, "none", "such a base is of an earlier log"
        ),
        folder_case(
            "replaced_foreign",
            foreign.lines,
            files | synced | snapshot,
            "unanchored",
            "another tool compacted the log since",
        ),
        both,
    ]


def by_restore() -> list[Case]:
    common = Chain().add_many(2)
    left, live = Chain(3, common.head).add_many(2), Chain(3, common.head).add(record_id="other")
    left_lines, live_lines = common.lines + left.lines, common.lines + live.lines
    aside = {f"{ASIDE}/events.wal": b"".join(left_lines), f"{ASIDE}/synced": mark(left_lines, 4)}
    backup = {"backup/20260101T000000/events.wal": b"".join(common.lines)}
    synced = {"synced": mark(live_lines, 3)}
    later = {"backup/20260101T000000/events.wal": b"".join(left_lines) + own_line(left.fields())}
    return [
        folder_case(
            "replaced_by_restore", left_lines, aside | backup | synced, "none", "was set aside", MISSING
        ),
        folder_case(
            "replaced_restored", live_lines, aside | backup | synced, "none", "the one that is meant"
        ),
        folder_case(
            "replaced_cut", common.lines, aside | backup | synced, "none", "cut, and none that was set aside"
        ),
        folder_case(
            "replaced_backed_up",
            left_lines,
            aside | later | synced,
            "none",
            "a backup holds it too: it may be the one that was brought back",
        ),
        folder_case(
            "replaced_behind_hint",
            left_lines,
            aside | backup | {"synced": mark(left_lines, 2)},
            "none",
            "what stands behind the last sync was set aside",
            MISSING,
        ),
        folder_case(
            "replaced_unsynced",
            live_lines,
            aside | backup | {"synced": mark(left_lines, 2)},
            "none",
            "other lines were written since",
        ),
        folder_case(
            "replaced_by_copy",
            common.lines[:1],
            backup | {"synced": mark(Chain(9).add_many(2).lines, 2)},
            "none",
            "a copy began like it, and the log that was synced did not",
            MISSING,
        ),
        folder_case(
            "replaced_by_nobody",
            Chain().add(record_id="other").lines,
            backup | {"synced": mark(Chain(9).add_many(2).lines, 2)},
            "none",
            "no copy is of this log: the hint is ignored",
        ),
        folder_case(
            "replaced_left_hint",
            common.lines,
            aside | backup | {"synced": mark(left_lines, 4)},
            "none",
            "the hint of the log that was left says nothing",
        ),
        *killed(aside, left_lines, left),
    ]


def killed(aside: dict[str, bytes], left_lines: list[bytes], left: Chain) -> list[Case]:
    """A restore was killed before it swapped the logs: what it set aside is another name of the log."""
    went_on = [*left_lines, *(left.add().lines[-1] for _ in range(2))]
    shared = {f"{ASIDE}/events.wal": b"".join(went_on)}
    nobody = {f"{ASIDE}/events.wal": b"".join(left_lines)}
    early = {f"{ASIDE}/synced": mark(left_lines, 3)}
    return [
        folder_case(
            "replaced_never",
            went_on,
            aside | shared | {"synced": mark(went_on, 5)},
            "none",
            "it went on with the log",
        ),
        folder_case(
            "replaced_unknown_end",
            left_lines,
            nobody | {"synced": mark(left_lines, 2)},
            "none",
            "no hint beside it: that is not how a restore leaves a log",
        ),
        folder_case(
            "replaced_early_end",
            left_lines,
            aside | early | {"synced": mark(left_lines, 2)},
            "none",
            "its hint knows another end",
        ),
    ]


def compaction_killed() -> list[Case]:
    """The logs were swapped, and the hint still speaks of the one that was retired."""
    old = Chain().add_many(3)
    store = Store(old).compact()
    new, later = store.chain.lines, state_file(9, "", [])
    beside = store.files | {
        "backup/20260101T000000/events.wal": b"".join(new),
        f"base/{sha256(later)}.json": later,
    }
    return [
        folder_case(
            "replaced_just_now",
            new,
            beside | {"synced": mark(old.lines, 3)},
            "anchored",
            "it begins where the log ended that was synced",
        ),
        folder_case(
            "replaced_and_left",
            new,
            beside
            | {"synced": mark(old.lines, 3)}
            | {f"{ASIDE}/events.wal": b"".join(new), f"{ASIDE}/synced": mark(new, 1)},
            "anchored",
            "a restore went back to where it begins",
            MISSING,
        ),
        folder_case(
            "replaced_long_ago",
            new,
            beside | {"synced": mark(old.lines, 2)},
            "anchored",
            "it begins behind another event than the one that was synced",
            MISSING,
        ),
    ]


def lines_gone() -> list[Case]:
    """A log that holds bytes and no line, beside a snapshot."""
    found = []
    for name, seq, log, kinds in (
        ("replaced_by_zeros", 7, bytes(500), (MISSING,)),
        ("replaced_by_zeros_early", 2, bytes(500), ()),
        ("replaced_by_nothing", 7, b"", ()),
    ):
        files = {"snapshot.json": state_file(seq, "", [])}
        note = "events made the snapshot" if kinds else "nothing tells that there were lines"
        case = folder_case(name, [log] if log else [], files, "none", note, *kinds).without_events()
        case.tail_line = 1 if log else None
        found.append(case)
    return found


def cases() -> list[Case]:
    return [*by_compaction(), *by_restore(), *compaction_killed(), *lines_gone()]
