"""Logs that show what the links between lines and the end of the file tell."""

from craft import Case, Chain, one, own_line, payload, spaced


def chain_of(count: int) -> list[bytes]:
    return Chain().add_many(count).lines


def order() -> list[Case]:
    five = chain_of(5)
    forged = one().add(prev_hash="cd" * 32).lines[1]
    other = Chain().add(record_id="other").add().lines
    garbage = b"garbage\n"
    edited = five[2].replace(b"fact 3", b"fact E")
    rehashed = Chain().add().add().add(record={"label": "rewritten"}).lines[2]
    foreign = Chain().foreign().foreign().foreign()
    older = Chain().foreign(spaced).foreign(spaced).foreign()
    crlf = Chain().foreign(end=b"\r\n").foreign(spaced, end=b"\r\n")
    unknown = Chain().add().foreign(extra={"signature": "x", "a": 1}).add()
    blank = [b"\n", five[0], b"\r\n", b" \t\r\n", five[1], b"\n", five[2], b"\n"]
    first = own_line(payload(2, "ef" * 32))
    fresh = own_line(payload(9, ""))
    return [
        Case("empty", [], "an empty log is valid"),
        Case("only_newline", [b"\n"], "one blank line"),
        Case(
            "only_blanks", [b"\n", b"  \n", b"\t\r\n"], "blank lines hold space, tab and carriage return only"
        ),
        Case(
            "blank_vertical_tab",
            [b"\x0b\n", *five],
            "a vertical tab is not blank",
            [(1, "unreadable")],
            None,
            5,
        ),
        Case("honest", five, "five lines of ours", events=5),
        Case(
            "foreign_compact",
            foreign.lines,
            "insertion order and spaces, hash over the compact payload",
            events=3,
        ),
        Case(
            "foreign_spaced", older.lines, "hash over the spaced payload, then over the compact one", events=3
        ),
        Case("foreign_crlf", crlf.lines, "CRLF in both dialects", events=2),
        Case(
            "foreign_unknown_fields", unknown.lines, "unknown fields in a foreign form are a note", events=3
        ),
        Case("blank_lines", blank, "blank lines everywhere", events=3),
        Case("deleted_first", five[1:], 'the first event has prev_hash ""', [(1, "unlinked")], None, 4),
        Case("deleted_middle", [*five[:2], *five[3:]], "a line is gone", [(3, "unlinked")], None, 4),
        Case("deleted_last", five[:4], "a cut at a line boundary is invisible to the chain", events=4),
        Case(
            "swapped",
            [five[0], five[2], five[1], *five[3:]],
            "all three links break",
            [(2, "unlinked"), (3, "unlinked"), (4, "unlinked")],
            None,
            5,
        ),
        Case(
            "duplicated",
            [*five[:3], five[2], *five[3:]],
            "the copy does not link to the original",
            [(4, "unlinked")],
            None,
            6,
        ),
        Case(
            "inserted",
            [*five[:2], forged, *five[2:]],
            "neither the forged line links nor the next",
            [(3, "unlinked"), (4, "unlinked")],
            None,
            6,
        ),
        Case(
            "edited",
            [*five[:2], edited, *five[3:]],
            "found by its own hash; the next line may link to the lost one",
            [(3, "altered")],
            None,
            4,
        ),
        Case(
            "edited_and_rehashed",
            [*five[:2], rehashed, *five[3:]],
            "found by the next link",
            [(4, "unlinked")],
            None,
            5,
        ),
        Case(
            "edited_first",
            [five[0].replace(b"fact 1", b"fact E"), *five[1:]],
            "the next line may link to the lost one",
            [(1, "altered")],
            None,
            4,
        ),
        Case(
            "edited_last",
            [*five[:4], five[4].replace(b"fact 5", b"fact E")],
            "a complete line is never a tail",
            [(5, "altered")],
            None,
            4,
        ),
        Case(
            "garbage_between",
            [*five[:2], garbage, *five[2:]],
            "the link across garbage still fits",
            [(3, "unreadable")],
            None,
            5,
        ),
        Case(
            "garbage_instead",
            [*five[:2], garbage, *five[3:]],
            "any link is accepted after a lost line",
            [(3, "unreadable")],
            None,
            4,
        ),
        Case(
            "garbage_twice",
            [five[0], garbage, garbage, *five[3:]],
            "two lost lines",
            [(2, "unreadable"), (3, "unreadable")],
            None,
            3,
        ),
        Case(
            "garbage_then_blank",
            [five[0], garbage, b"\n", *five[2:]],
            "a blank line does not end the gap",
            [(2, "unreadable")],
            None,
            4,
        ),
        Case(
            "garbage_then_first",
            [*five[:2], garbage, *other],
            'prev_hash "" is never right after an event',
            [(3, "unreadable"), (4, "unlinked")],
            None,
            4,
        ),
        Case(
            "garbage_first",
            [garbage, *five],
            "the first event may follow garbage",
            [(1, "unreadable")],
            None,
            5,
        ),
        Case(
            "garbage_first_then_link",
            [garbage, *five[2:]],
            "any link is accepted after a lost line",
            [(1, "unreadable")],
            None,
            3,
        ),
        Case(
            "gap_is_over",
            [five[0], garbage, five[2], five[4]],
            "the freedom is for one line only",
            [(2, "unreadable"), (4, "unlinked")],
            None,
            3,
        ),
        Case("first_with_link", [first], 'the first event has prev_hash ""', [(1, "unlinked")], None, 1),
        Case("first_twice", [five[0], fresh], "a second beginning", [(2, "unlinked")], None, 2),
        Case("two_logs", [*five[:2], *other], "one log after another", [(3, "unlinked")], None, 4),
        Case("seq_gap", Chain().add().add(seq=7).add().lines, "seq may jump", events=3),
        Case(
            "seq_repeated",
            Chain().add().add(seq=1).add(seq=1).lines,
            "seq may repeat: links decide",
            events=3,
        ),
    ]


def tails() -> list[Case]:
    five = chain_of(5)
    return [
        Case("torn_line", [*five[:4], five[4][:50]], "bytes after the last newline are a tail", [], 5, 4),
        Case(
            "torn_newline",
            [*five[:4], five[4][:-1]],
            "a whole object without newline is a tail too",
            [],
            5,
            4,
        ),
        Case("torn_garbage", [*five, b"\x00\x00\x00"], "whatever the bytes are", [], 6, 5),
        Case("torn_spaces", [*five, b"  "], "blank bytes without newline are a tail", [], 6, 5),
        Case("torn_first", [five[0][:40]], "nothing but a tail", [], 1, 0),
        Case(
            "torn_after_damage",
            [five[0], b"garbage\n", five[2], five[3][:9]],
            "damage and tail",
            [(2, "unreadable")],
            4,
            2,
        ),
        Case(
            "zero_page",
            [*five, bytes(512) + b"\n"],
            "zeros with a newline are a line",
            [(6, "unreadable")],
            None,
            5,
        ),
    ]


def cases() -> list[Case]:
    return [*order(), *tails()]
