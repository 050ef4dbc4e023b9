"""Reads what a retired log says, and what it adds up to. For `past_logs.py`.

Sections 7 and 16 of docs/format.md.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import erased_lines

MAX_RECORD_BYTES = 16 * 1024 * 1024
#: The records that an act may change. What becomes of them is not derived here.
OF_ACTS = ("block:", "bedge:", "config:")


def merged(old: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = merged(kept.get(key), value)
    return kept


class Records:
    """The state, as far as events tell it without a rule: section 7 of the format."""

    def __init__(self, base: dict[str, Any] | None = None) -> None:
        self.known: dict[str, Any] = {}
        self.acted = False
        for record in base["records"] if base else []:
            if isinstance(record.get("id"), str):
                self.known[record["id"]] = erased_lines.without_salt(record)

    def apply(self, event: dict[str, Any], law: Any) -> None:
        name, op, record = event["record_id"], event["op"], erased_lines.without_salt(event["record"])
        if op in ("upsert", "migrate") or erased_lines.is_erasure(event) or erased_lines.is_pruning(event):
            self.known[name] = {**(record or {}), "id": name}
        elif op == "patch":
            new = {**merged(self.known.get(name, {}), record or {}), "id": name}
            if len(law.canonical(new)) <= MAX_RECORD_BYTES:
                self.known[name] = new
        elif op == "delete" and name in self.known:
            self.known[name] = {**self.known[name], "status": "tombstone"}
        elif op == "act":
            self.acted = True

    def spelled(self, law: Any, with_acts: bool) -> list[bytes]:
        kept = (one for one in self.known.values() if one["id"])
        return [law.canonical(one) for one in kept if with_acts or not one["id"].startswith(OF_ACTS)]


def segment_of(log_class: Any) -> Any:
    """A retired log: its lines may be redacted, its trail is followed and its events are applied."""

    class Segment(log_class):  # type: ignore[misc]
        def __init__(self, stream: BinaryIO, hop: Any, state: Records | None, law: Any) -> None:
            self.hop, self.state, self.law = hop, state, law
            self.held: list[dict[str, Any]] = []
            self.redacted: list[tuple[int, int, int]] = []  # offset, line, seq less its place
            self.steps: set[int] = set()
            super().__init__(stream)

        def _read(self, line: Any) -> tuple[Any, str, str]:
            found = erased_lines.redacted(line.raw) if self.hop.bound else None
            if found is None:
                return super()._read(line)  # type: ignore[no-any-return]
            event = dict.fromkeys(("ts", "op", "record_id"), "") | {"seq": found[0], "hash": found[1]}
            # What it was linked to went with its payload: the trail says what stood before.
            link = {"record": None, "recursion_depth": 0, "prev_hash": self.known.head}
            self.redacted.append((line.offset, line.number, found[0] - self.known.events))
            return event | link, "", ""

        def _heard(self, line: Any, event: dict[str, Any], begin: int) -> None:
            super()._heard(line, event, begin)
            if not self.redacted or self.redacted[-1][0] != line.offset:
                self.steps.add(event["seq"] - self.known.events + 1)
            if self.hop.trail:
                self.hop.trail.add(event["hash"])
            if begin == line.offset:
                self._apply(event)
            else:
                self.held.append(event)

        def _apply(self, event: dict[str, Any]) -> None:
            if self.state and event["seq"] > self.hop.settled:
                self.state.apply(event, self.law)

        def _close(self, batch: Any) -> None:
            super()._close(batch)
            for event in self.held if not (batch.damaged or batch.expected <= batch.last) else []:
                self._apply(event)
            self.held = []

        def stray(self) -> tuple[int, int] | None:
            """Where the first redacted line stands whose seq is not the one of its place."""
            steps = self.steps or {one[2] for one in self.redacted[:1]}
            return (
                next((one[:2] for one in self.redacted if {one[2]} != steps), None)
                if self.is_steady
                else None
            )

        @property
        def is_steady(self) -> bool:
            return len(self.steps) <= 1

    return Segment
