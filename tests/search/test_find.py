"""An index that a face declares leads to the records that a scan would find, in order, page by page."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import InvalidArgument

FACE = "blocks"
CATEGORIES = ["fact", "Fact", "fact ", "über", "a\u0000b", ""]


def block(number: int, choice: random.Random) -> dict[str, Any]:
    data: dict[str, Any] = {"content": f"number {number}"}
    if choice.random() < 0.9:
        data["category"] = choice.choice([*CATEGORIES, 1, 1.0, None, True])
    if choice.random() < 0.9:
        data["created_at"] = choice.choice(["2026-01-01", "2026-01-02", "2026-01-03", 5, None])
    data["tags"] = dict.fromkeys(choice.sample(["x", "y", "z"], choice.randint(0, 3)), True)
    status = choice.choice(["active", "active", "active", "archived"])
    return {"id": f"block:{number}", "kind": "block", "status": status, "data": data}


def order(record: Any) -> tuple[Any, ...]:
    """Null or missing last; numbers before text; then as they came, which a stable sort keeps."""
    then = record.data.get("created_at")
    return (then is None, isinstance(then, str), "" if then is None else then)


def scanned(records: list[Any], field: str, value: Any) -> list[str]:
    def has(record: Any) -> bool:
        if field not in record.data:
            return False
        held = record.data[field]
        if isinstance(held, dict):
            return value in held
        return isinstance(held, bool) == isinstance(value, bool) and bool(held == value)

    active = [record for record in records if record.status == "active" and has(record)]
    return [record.id for record in sorted(active, key=order)]


def paged(find: Any, index: str, value: Any, size: int, reverse: bool) -> list[str]:
    """Everything that an index leads to, in pages of a size."""
    ids: list[str] = []
    after = None
    while True:
        page = find(index, [value], after=after, limit=size, reverse=reverse)
        ids += [record.id for record in page]
        if len(page) < size:
            return ids
        after = (page[-1].data.get("created_at"), page[-1].id)


def check(find: Any, records: list[Any], choice: random.Random) -> None:
    wanted = [("blocks.by_category", "category", value) for value in [*CATEGORIES, 1, True, None, "none"]]
    wanted += [("blocks.by_tag", "tags", value) for value in ("x", "y", "none")]
    for index, field, value in wanted:
        expected = scanned(records, field, value)
        assert paged(find, index, value, choice.randint(1, 7), False) == expected, (index, value)
        assert paged(find, index, value, 1000, True) == expected[::-1], (index, value)


@pytest.mark.parametrize("seed", range(6))
def test_an_index_equals_a_scan_after_every_write_of_anyone(tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)
    with ChronoStore(tmp_path) as store, ChronoStore(tmp_path) as other:
        moments: list[tuple[int, list[Any]]] = []
        for _ in range(12):
            writer = choice.choice([store, other])
            for _ in range(choice.randint(1, 12)):
                writer.engine.upsert(block(choice.randrange(25), choice), FACE)
            writer.upsert({"id": f"plain-{choice.randrange(9)}", "kind": "block"})
            if choice.random() < 0.3:
                writer.engine.delete(f"block:{choice.randrange(25)}", FACE)
            if choice.random() < 0.2:
                writer.compact()
            everything = [
                record
                for record in store.query(kind="block", status="", faces=True)
                if record.id.startswith("block:")
            ]
            for reader in (store, other):
                check(reader.engine.find, everything, choice)
            moments.append((store.wal_seq(), everything))
        seq, then = choice.choice(moments)
        check(store.engine.as_of(seq=seq).find, then, choice)


def test_a_place_in_an_index_outlives_its_record(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        engine = store.engine
        for number in range(6):
            data = {"category": "fact", "created_at": f"2026-01-0{number + 1}"}
            engine.upsert({"id": f"block:{number}", "kind": "block", "data": data}, FACE)
        engine.delete("block:2", FACE)
        page = engine.find("blocks.by_category", ["fact"], after=("2026-01-03", "block:2"), limit=10)
        assert [record.id for record in page] == ["block:3", "block:4", "block:5"]
        page = engine.find(
            "blocks.by_category", ["fact"], after=("2026-01-03", "block:nobody"), limit=10, reverse=True
        )
        assert [record.id for record in page] == ["block:1", "block:0"]


def test_what_no_face_declares_is_refused(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        engine = store.engine
        with pytest.raises(InvalidArgument, match=r"^index must be one that a face declares"):
            engine.find("blocks.by_mood", ["fact"], limit=1)
        with pytest.raises(
            InvalidArgument, match=r"^key must have the 1 fields of blocks\.by_category, got 2"
        ):
            engine.find("blocks.by_category", ["fact", "x"], limit=1)
        assert engine.find("blocks.by_category", ["fact"], limit=0) == []
        asked: dict[str, dict[str, Any]] = {
            "key": {"key": "fact", "limit": 1},
            "after": {"key": ["fact"], "after": "A", "limit": 1},
            "limit": {"key": ["fact"], "limit": -1},
        }
        for field, question in asked.items():
            with pytest.raises(InvalidArgument, match=f"^{field} must .+, got ") as refused:
                engine.find("blocks.by_category", **question)
            assert refused.value.field == field
        with pytest.raises(InvalidArgument, match=r"^key: "):
            engine.find("blocks.by_category", [float("nan")], limit=1)
