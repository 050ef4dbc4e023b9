"""Bases that say when their records were made and spoken of last, rightly or not."""

import json
from typing import Any

from cases_base import HONEST_RECORD, pretty, with_base
from craft import Case

ROW = [1, 1767225600000000, 1, 1767225600000000]
OTHER = {**HONEST_RECORD, "label": "again"}
ALTERED = "base-altered"


def base(rows: Any, records: list[Any], later: Any) -> bytes:
    """A base as we write it: rows before the records, and those that came later behind them."""

    def lines(items: Any) -> str:
        spelled = (json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in items)
        return "\n" + ",\n".join(spelled) + "\n" if items else "\n"

    text = f'{{"moments":[{lines(rows)}],"records":[{lines(records)}],"later_moments":[{lines(later)}],'
    return (text + '"seq":1,"last_hash":"","ts":"2026-01-01T00:00:00.000000Z"}\n').encode()


def sound(name: str, note: str, content: bytes) -> list[Case]:
    """A base that is one in our spelling and in any other."""
    return [
        with_base(content).case(name, "anchored", note),
        with_base(pretty(content)).case(f"{name}_pretty", "anchored", f"{note}, in any spelling"),
    ]


def unsound(name: str, note: str, content: bytes) -> list[Case]:
    """A base that is none in our spelling and in any other."""
    return [
        with_base(content).case(name, "damaged", note, ALTERED),
        with_base(pretty(content)).case(f"{name}_pretty", "damaged", f"{note}, in any spelling", ALTERED),
    ]


def cases() -> list[Case]:
    one, two = [HONEST_RECORD], [HONEST_RECORD, OTHER]
    top = 2**63 - 1
    alone = json.dumps({"records": one, "moments": [ROW], "seq": 1, "last_hash": ""}).encode()
    return [
        *sound("moments_of_one", "a row for the record", base([ROW], one, [])),
        *sound("moments_of_none", "no records, no rows", base([], [], [])),
        *sound("moments_later", "the second came later", base([ROW], two, [ROW])),
        *sound("moments_all_later", "all of them came later", base([], two, [ROW, ROW])),
        *sound("moments_unknown", "nothing is known", base([[None] * 4], one, [])),
        *sound("moments_half_known", "older than its row", base([[None, None, 7, 5]], one, [])),
        *sound("moments_without_times", "no ts could be read", base([[1, None, 2, None]], one, [])),
        *sound("moments_widest", "the ends of the range", base([[0, -top, top, top]], one, [])),
        *sound("moments_nameless", "a row for what is passed over, too", base([ROW], [{}], [])),
        with_base(alone).case("moments_alone", "anchored", "the second list may be missing"),
        *unsound("moments_missing", "one row too few", base([ROW], two, [])),
        *unsound("moments_too_many", "one row too many", base([ROW, ROW], one, [])),
        *unsound("moments_too_many_later", "one row too many", base([ROW], one, [ROW])),
        *unsound("moments_only_later", "a row too few", base([], two, [ROW])),
        *unsound("moments_short", "a row has four numbers", base([ROW[:3]], one, [])),
        *unsound("moments_long", "a row has four numbers", base([[*ROW, 1]], one, [])),
        *unsound("moments_number", "a row is a list", base([1], one, [])),
        *unsound("moments_text", "a number is no text", base([["1", 1, 1, 1]], one, [])),
        *unsound("moments_truth", "a number is no truth value", base([[True, 1, 1, 1]], one, [])),
        *unsound("moments_fraction", "a number is whole", base([[1.0, 1, 1, 1]], one, [])),
        *unsound("moments_negative", "a seq is not negative", base([[-1, 1, 1, 1]], one, [])),
        *unsound("moments_too_large", "64 bits", base([[1, 1, 1, top + 1]], one, [])),
        *unsound("moments_too_low", "64 bits", base([[1, -top - 1, 1, 1]], one, [])),
        *unsound("moments_seq_back", "made after it was spoken of", base([[2, 1, 1, 1]], one, [])),
        *unsound("moments_time_back", "made after it was spoken of", base([[1, 2, 1, 1]], one, [])),
        *unsound("moments_forgotten", "made, and never spoken of", base([[1, 1, None, 1]], one, [])),
        *unsound("moments_object", "a list", base([ROW], one, []).replace(b"[1,", b'{"a":1},[1,')),
        with_base(alone.replace(b"[[", b'{"a":[').replace(b"]]", b"]}")).case(
            "moments_in_an_object", "damaged", "moments are a list", ALTERED
        ),
    ]
