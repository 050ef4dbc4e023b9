"""Logs whose batches are whole, half or broken."""

from craft import Case, Chain, one


def cases() -> list[Case]:
    whole = one().begin(2).add().add().add()
    single = one().begin(1).add()
    half = one().begin(3).add().add()
    pair = one().begin(1).add().begin(2).add().add()
    nested = one().begin(3).add().begin(1).add().add()
    sentinel = one().begin(2).add().add(op="compact", record_id="__compact__").add()
    skipped = one().begin(3).add().add(seq=5).add()
    repeated = one().begin(3).add().add(seq=3).add(seq=4).add(seq=5).add()
    outside = one().begin(2).add().add(seq=40).add()
    back = one().begin(2).add().add(seq=1).add()
    unlinked = one().begin(2).add().add(prev_hash="ab" * 32).add()
    orphan = one().begin(1, prev_hash="ab" * 32).add().add()
    longest = one().begin(2**32 - 1).add()
    late = one().begin(2).add(seq=4).add(seq=3).add()
    at_the_end = Chain().begin(2, seq=2**63 - 1).add(seq=5)
    w, h = whole.lines, half.lines
    garbage = b"garbage\n"
    injected = w[3].replace(b'"ts":', b'"tr":1,"ts":')
    broken = "broken-batch"
    return [
        Case("batch_whole", w, "begin, two events, and one after", events=5),
        Case("batch_of_one", single.lines, "we write none such, but it is whole", events=3),
        Case("batch_first", Chain().begin(2).add().add().lines, "a log may open with a batch", events=3),
        Case("batch_blank_inside", [*w[:3], b"\n", *w[3:]], "blank lines do not count", events=5),
        Case("batches_in_a_row", pair.lines, "one after another", events=6),
        Case("batch_half", h, "the end of the file inside a batch: a tail from its begin", [], 2, 1),
        Case("batch_half_and_torn", [*h[:3], h[3][:30]], "torn inside a batch", [], 2, 1),
        Case("batch_half_blank", [*h, b"\n"], "a blank line does not complete it", [], 2, 1),
        Case("batch_only_begin", h[:2], "nothing but a begin", [], 2, 1),
        Case("batch_nothing_before", Chain().begin(2).add().lines, "a tail from the first byte", [], 1, 0),
        Case("batch_longest", longest.lines, "the largest promise", [], 2, 1),
        Case("batch_largest_seq", at_the_end.lines, "its last seq is beyond 63 bits", [(1, broken)], None, 2),
        Case(
            "batch_begin_inside",
            nested.lines,
            "the inner batch is whole, the outer is not",
            [(2, broken)],
            None,
            6,
        ),
        Case("batch_sentinel_inside", sentinel.lines, "a sentinel closes it", [(2, broken)], None, 5),
        Case(
            "batch_garbage_inside",
            [*w[:3], garbage, w[4]],
            "garbage in place of its last event",
            [(2, broken), (4, "unreadable")],
            None,
            4,
        ),
        Case(
            "batch_garbage_more",
            [*w[:3], garbage, *w[3:]],
            "garbage takes a place: the last event stands outside",
            [(2, broken), (4, "unreadable")],
            None,
            5,
        ),
        Case(
            "batch_altered_inside",
            [*w[:2], w[2].replace(b"fact 3", b"fact E"), *w[3:]],
            "an edited line inside",
            [(2, broken), (3, "altered")],
            None,
            4,
        ),
        Case(
            "batch_all_garbage",
            [*w[:2], garbage, garbage, w[4]],
            "both places are lost",
            [(2, broken), (3, "unreadable"), (4, "unreadable")],
            None,
            3,
        ),
        Case(
            "batch_half_with_garbage",
            [*h[:3], garbage],
            "damaged and not finished",
            [(2, broken), (4, "unreadable")],
            None,
            3,
        ),
        Case(
            "batch_half_with_garbage_torn",
            [*h[:3], garbage, b"{"],
            "damaged, then torn",
            [(2, broken), (4, "unreadable")],
            5,
            3,
        ),
        Case(
            "batch_unlinked_inside",
            unlinked.lines,
            "a broken link inside",
            [(2, broken), (4, "unlinked")],
            None,
            5,
        ),
        Case(
            "batch_injected_inside",
            [*w[:3], injected, w[4]],
            "a field outside the hash inside",
            [(2, broken), (4, "injected")],
            None,
            5,
        ),
        Case(
            "batch_unlinked_begin",
            orphan.lines,
            "the fault is before the batch, which is whole",
            [(2, "unlinked")],
            None,
            4,
        ),
        Case(
            "batch_unlinked_begin_half",
            one().begin(3, prev_hash="ab" * 32).add().lines,
            "bytes that show a fault are not a tail to be cut",
            [(2, "unlinked"), (2, broken)],
            None,
            3,
        ),
        Case(
            "batch_injected_begin_half",
            [w[0], w[1].replace(b'"ts":', b'"tr":1,"ts":'), w[2]],
            "bytes that show a fault are not a tail to be cut",
            [(2, "injected"), (2, broken)],
            None,
            3,
        ),
        Case(
            "batch_damage_then_half",
            [garbage, *h],
            "damage before it does not matter",
            [(1, "unreadable")],
            3,
            1,
        ),
        Case(
            "batch_deleted_inside",
            [*w[:2], *w[3:]],
            "an event is missing",
            [(2, broken), (3, "unlinked")],
            None,
            4,
        ),
        Case(
            "batch_seq_skipped",
            skipped.lines,
            "seq 4 is missing though the links fit",
            [(2, broken)],
            None,
            5,
        ),
        Case("batch_seq_repeated", repeated.lines, "seq 3 twice", [(2, broken)], None, 7),
        Case("batch_seq_swapped", late.lines, "seq 4 ends it; 3 stands outside", [(2, broken)], None, 5),
        Case("batch_seq_beyond", outside.lines, "another seq closes it", [(2, broken)], None, 5),
        Case("batch_seq_before", back.lines, "an earlier seq closes it", [(2, broken)], None, 5),
        Case(
            "batch_begin_altered",
            [w[0], w[1].replace(b"__begin__", b"__begun__"), *w[2:]],
            "no begin, no batch",
            [(2, "altered")],
            None,
            4,
        ),
        Case("batch_begin_deleted", [w[0], *w[2:]], "its events stand alone", [(2, "unlinked")], None, 4),
        Case(
            "batch_closed_by_half",
            one().begin(2).add().begin(2).add().lines,
            "one broken, then one half",
            [(2, broken)],
            4,
            3,
        ),
        Case(
            "batch_closed_by_unlinked_begin",
            one().begin(2).add().begin(1, prev_hash="ab" * 32).add().lines,
            "the closing line has a fault of its own",
            [(2, broken), (4, "unlinked")],
            None,
            5,
        ),
        Case(
            "batch_unlinked_begin_half_garbage",
            [*one().begin(2, prev_hash="ab" * 32).lines, garbage],
            "two damages at one offset",
            [(2, "unlinked"), (2, broken), (3, "unreadable")],
            None,
            2,
        ),
    ]
