"""Two stores in which ann does the same things, once alone and once among others, and what she is told there.

Everything that ann is told is made comparable: seqs, hashes, moments and random digits are left out, because
the guide exempts them; ids, order, scores, counts, texts of errors and warnings are kept to the last bit.
"""

from __future__ import annotations

import dataclasses
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
from chronomemory import ChronoStore, DepGraph, Memory, WalEvent
from chronomemory.errors import ChronoError
from chronomemory.pages import Pages
from chronomemory.record import ChronoRecord

NOW = datetime(2026, 5, 14, tzinfo=timezone.utc)
ANN = {"user": "ann"}
#: All others, who use the same words and name the ids of ann.
OTHERS = ({"user": "bob"}, {"agent": "sup"}, {"session": "s9"}, {"user": "bob", "agent": "sup"})
#: What nobody but the others ever says: no answer and no message may have it.
SECRET = "zebra"
WORDS = ("green tea at four", "black coffee at five", "the river house", "a cup of tea in the garden")
DIM = 4

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?")
_DIGITS = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?)*[0-9a-f]{4,}")
#: Places in the log, in words and in JSON; the number of events; cursors, salts, and addresses with digits.
_PLACES = re.compile(
    r"\b(seq|event|row|last is|byte|offset|to) [\d,]+|(seq\W{2,4})\d+|[\d,]+ (?=events|MOMENT)|\b\d{13}\b"
    r"|(cursor=)\S+|(\"~\W{3,5})[\w-]{16}"
)
#: How wide a column is depends on seqs, too.
_WIDTH = re.compile(r"(?: |\\u2500)+")
#: What is exempt: where an event stands in the log, and how large the files are.
_EXEMPT = {
    *("seq", "first_seq", "last_seq", "head", "hash", "prev_hash", "ts", "events", "row", "cursor"),
    *("next_cursor", "moment", "bytes", "at", "generation", "created_seq", "updated", "written"),
}


class World:
    """A store with what all see and what ann has; if she is not alone, others write before each step."""

    def __init__(self, project: Path, *, alone: bool) -> None:
        self.project, self.alone, self.steps = project, alone, 0
        self.store = ChronoStore(project, durability="off", head_file=project / "head")
        self.seconds = 0.0
        self.ann = self.store.scoped(**ANN)
        self.told: dict[str, Any] = {}
        # Spaces and their models, indexes and search fields belong to the store, so they are there before.
        self.store.upsert({"id": "SEED", "label": "a seed"})
        self.store.vectors.attach("SEED", [1.0, 0.0, 0.0, 0.0], model="m")
        self.store.vectors.attach_tokens("SEED", np.eye(2, DIM), model="t", most=4)
        self.store.upkeep.create_index("data.topic")
        self.memory_of({}).remember("a seed that all see", ["seed"])

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def now(self) -> datetime:
        """A clock of ann's own, which goes on by a second a step."""
        return NOW + timedelta(seconds=len(self.told))

    def memory_of(self, names: Mapping[str, str]) -> Memory:
        return Memory(self.store, seconds=lambda: self.seconds, **names)  # type: ignore[arg-type]

    def step(self, name: str, work: Callable[[], Any]) -> None:
        """Let the others write, then let ann do something, and keep what she is told."""
        if not self.alone:
            self.interfere()
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                outcome = comparable(work())
            except (ChronoError, ValueError, LookupError, AttributeError, OSError) as error:
                outcome = [type(error).__name__, str(error), repr(vars(error))]
        told = [outcome, [str(each.message) for each in heard]]
        self.told[name] = without_exempt(
            json.dumps(told, sort_keys=True).replace(str(self.project), "PROJECT")
        )

    def interfere(self) -> None:
        """Do as each of the others all that somebody can do, in the words of ann and with her ids."""
        self.steps += 1
        for place, names in enumerate(OTHERS):
            other, number = self.store.scoped(**names), 10 * self.steps + place
            record, twin = f"{SECRET}-{number}", f"{SECRET}-twin-{number}"
            data = {"previous": "A-1", "topic": "tea", "speaker": "Ann", "time": "2026-05-01"}
            words = f"{WORDS[number % len(WORDS)]} {SECRET}"
            other.upsert({"id": record, "label": words, "data": data, "evidence": ["A-1", "SHARED-1"]})
            other.upsert({"id": twin, "label": words, "data": data, "confidence": 0.9})
            angle = number / 7
            other.vectors.attach(record, [np.cos(angle), np.sin(angle), 0.5, 0.1])
            other.vectors.attach_tokens(record, np.eye(3, DIM, dtype=np.float32) + number / 100)
            DepGraph(other).add_edge(twin, record, "depends_on")  # type: ignore[arg-type]
            edge = {"kind": "dependency_edge", "label": "rests on"}
            ends = {"source": record, "target": "A-1", "edge_type": "depends_on"}
            other.upsert({"id": f"{SECRET}-edge-{number}", **edge, "data": ends})
            if place == 0:
                other.invalidate(record, f"{SECRET}: it was wrong")
            if place == 1:
                other.delete(twin)
            other.record_token_metric("T", number, 1, 1)
            other.record_skill_run("S", False, number, SECRET)
        memory = self.memory_of(OTHERS[self.steps % 2])
        memory.remember(WORDS[self.steps % len(WORDS)], ["self/value"])
        memory.learn(f"{SECRET} {self.steps}", ["work"])
        if self.steps % 5 == 0:
            memory.dream()
            memory.frame("attention", "green tea")
        with Pages(self.store, self.project / "bobs", user="bob") as pages:
            pages.append("user-profile", f"Bob likes green tea, {SECRET} {self.steps}.", ["tea"])


def comparable(value: Any) -> Any:
    """Return what JSON can carry of an answer, but for what is exempt."""
    if isinstance(value, ChronoRecord):
        return value.to_dict() | {"scope": str(value.scope), "version": value.version}
    if isinstance(value, WalEvent):
        return [value.op, value.record_id, comparable(value.record)]
    if isinstance(value, range):
        return len(value)
    if isinstance(value, np.ndarray):
        return [list(value.shape), value.tobytes().hex(" ", 4)]
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "model_dump"):
        return comparable(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return comparable(fields)
    if isinstance(value, Mapping):
        return {str(name): comparable(part) for name, part in value.items() if name not in _EXEMPT}
    if isinstance(value, list | tuple | set | frozenset | Iterator):
        parts = [comparable(part) for part in value]
        about = [comparable(getattr(value, name, None)) for name in ("scope", "known", "plan")]
        return parts if about == [None] * 3 else [*about, bool(getattr(value, "cursor", None)), parts]
    return value if isinstance(value, str | int | None) else str(value)


def without_exempt(text: str) -> str:
    """Leave out moments and places in the log; random digits are numbered in the order in which they come."""
    text = _MOMENT.sub("MOMENT", _WIDTH.sub(" ", text)).replace("\\n ", "\\n")
    # A moment of change is only shown if it is of another second.
    text = re.sub(r"\b[0-9a-f]{64}\b", "HASH", text).replace(" updated=MOMENT", "")
    text = _PLACES.sub(lambda found: next((part for part in found.groups() if part), "") + "N", text)
    known: dict[str, str] = {}
    return _DIGITS.sub(lambda found: known.setdefault(found[0], f"DIGITS-{len(known)}"), text)


def told_in_both(tmp_path: Path, life: Callable[[World], None]) -> dict[str, str]:
    """Let ann live the same life alone and among others; return what she was told, which must be the same."""
    # Answers name the folder of the project, which must be the same in both worlds.
    one, other = tmp_path / "alone" / "web", tmp_path / "among" / "web"
    with World(one, alone=True) as alone, World(other, alone=False) as among:
        for world in (alone, among):
            life(world)
            world.told["events"] = own_events(world)
        parted = differences(alone, among)
        assert not parted, json.dumps(parted, indent=1)
        leaks = [name for world in (alone, among) for name, said in world.told.items() if SECRET in said]
        assert not leaks, leaks
        return alone.told


def own_events(world: World) -> str:
    """Return what the log says of each record that ann sees: she adds events as if nobody else were there."""
    seen = [record.id for record in world.ann.query(status=None, faces=True)]
    return without_exempt(json.dumps([comparable(world.ann.history(name)) for name in seen]))


def differences(alone: World, among: World) -> dict[str, tuple[str, str]]:
    """Return the steps at which ann was told something else, with both answers from where they part."""
    found = {}
    for name, said in alone.told.items():
        other = among.told[name]
        if said != other:
            pairs = zip(said, other, strict=False)
            at = next(
                (n for n, (one, another) in enumerate(pairs) if one != another), min(len(said), len(other))
            )
            found[name] = said[max(at - 60, 0) : at + 160], other[max(at - 60, 0) : at + 160]
    return found
