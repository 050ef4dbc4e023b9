"""Shows the history of a memory and the grounds on which it is believed."""

from __future__ import annotations

from typing import Any

from chronomemory.blocks import Blocks
from chronomemory.blocks.ids import block_key, plain_id
from chronomemory.blocks.life.outcomes import in_words
from chronomemory.blocks.storage.edges import open_contradictions, shown_edges
from chronomemory.errors import HistoryUnavailable
from chronomemory.event import WalEvent
from chronomemory.face.handle import open_handle
from chronomemory.mcp.reading import Answer, answered
from chronomemory.mcp.rendering import clipped, item_of, line_of, one_line, quoted, text_of
from chronomemory.mcp.served_store import ServedStore, is_block
from chronomemory.reasons import Reason
from chronomemory.record import ChronoRecord, is_same, leaves
from chronomemory.rollback import WHOLE_OPS
from chronomemory.tools import short_id
from chronomemory.updates import merged

_VALUE_TOKENS, _CHANGES = 30, 12
_LINKS = 10


def history(served: ServedStore, memory_id: str, *, max_tokens: int) -> Answer:
    """Return the events of a memory, newest first, as many as fit."""
    record = served.find(memory_id)
    events = served.door.history(record.id)
    if not events:
        raise HistoryUnavailable(
            f'the events of "{record.id}" were dropped by a compaction',
            recovery="get_memory shows the memory as it is; a backup from before may have its events.",
        )
    notes = served.notes()
    rows = served.budget(max_tokens, notes).fit(reversed(_story(events, record.id)), _event_line)
    left_out = len(events) - len(rows)
    words = f"{len(rows)} events of {one_line({'id': short_id(record.id)})}, newest first"
    words += f"; {left_out} older ones left out" if left_out else ""
    lines = map(_event_line, rows)
    return answered(served, words, notes, lines, id=record.id, events=rows, left_out=left_out)


def _story(events: list[WalEvent], record_id: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    before: dict[str, Any] = {}
    for event in events:
        fields = event.record or {}
        if event.op == "act":
            changes = [in_words(fields, record_id)]
        else:
            now = dict(fields) if event.op in WHOLE_OPS else merged(before, fields)
            old, new = leaves(before), leaves(now)
            changes = []
            for path in dict.fromkeys([*old, *new]):
                # What is empty at the beginning was not changed.
                is_empty = path not in old and new[path] in ("", [], {}, False, None)
                is_own = path in ("id", "recursion_depth")
                if not (is_own or is_empty or is_same(old.get(path), new.get(path))):
                    changes.append(f"{path}: {_short(old.get(path))} → {_short(new.get(path))}")
            more = [f"and {len(changes) - _CHANGES} more"] if len(changes) > _CHANGES else []
            changes, before = changes[:_CHANGES] + more, now
        row = {"seq": event.seq, "time": event.ts, "op": event.op, "changes": changes or ["nothing changed"]}
        rows.append(row)
    return rows


def _short(value: Any) -> str:
    return "none" if value is None else clipped(quoted(value), _VALUE_TOKENS)[0]


def _event_line(row: dict[str, Any]) -> str:
    return f"- {one_line({name: row[name] for name in ('seq', 'time', 'op')})} {'; '.join(row['changes'])}"


def explain(served: ServedStore, memory_id: str, *, depth: int, max_tokens: int) -> Answer:
    """Return the grounds of a memory, its replacements, contradictions and rollbacks."""
    record = served.find(memory_id)
    tree = served.door.why(record.id, depth=depth)
    item = item_of(record, tokens=max_tokens // 8)
    notes = served.notes()
    budget = served.budget(max_tokens, notes)
    budget.take(item, line_of(item))
    around, more = _of_block(served, record)
    why = ((name, record.data.get(name)) for name in ("superseded_because", "retracted_because"))
    said = [_said(name.replace("_", " "), text) for name, text in why if isinstance(text, str) and text]
    every = [*said, *_of_record(tree.root), *around]
    grounds = budget.fit(every, _ground_line)
    left_out = tree.left_out + more + len(every) - len(grounds)
    what = "grounds and replacements" if grounds else "no grounds on record but its source"
    words = f"{what}; {left_out} places left out" if left_out else what
    circles = [f"circles: {', '.join(map(quoted, tree.circles))}"] if tree.circles else []
    lines = [line_of(item), *map(_ground_line, grounds), *circles]
    fields = {"grounds": grounds, "circles": list(tree.circles), "left_out": left_out}
    return answered(served, words, notes, lines, memory=item, **fields)


def _of_record(root: Reason) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    waiting = [(root, 0)]
    while waiting:
        reason, level = waiting.pop()
        if level:
            found.append(_ground(level, reason.relation, reason.record_id, reason.record, reason.again))
        for rollback in reason.rollbacks:
            words = f"withdrawn because {quoted(rollback.reason)}"
            if rollback.reinstated is not None:
                words += f", taken back because {quoted(rollback.reinstated)}"
            found.append(_said("rollback", words, level=level + 1, name=rollback.rollback_id))
        waiting += [(below, level + 1) for below in reversed(reason.grounds)]
    return found


def _ground(
    level: int, relation: str, record_id: str, record: ChronoRecord | None, again: str = ""
) -> dict[str, Any]:
    known = "" if record is None else clipped(text_of(record), 100)[0]
    return {
        "depth": level,
        "relation": f"{relation} ({again})" if again else relation,
        "id": record_id,
        "text": known,
        "status": "not a record here" if record is None else record.status,
        "confidence": 0.0 if record is None else round(record.confidence, 4),
    }


def _said(relation: str, text: str, *, level: int = 1, name: str = "") -> dict[str, Any]:
    return {"depth": level, "relation": relation, "id": name, "text": text, "status": "", "confidence": 0.0}


def _of_block(served: ServedStore, record: ChronoRecord) -> tuple[list[dict[str, Any]], int]:
    if not is_block(record):
        return [], 0
    name = plain_id(record.id)
    named: list[tuple[str, str]] = []
    for field, words in (("supersedes", "supersedes"), ("superseded_by", "superseded by")):
        if isinstance(other := record.data.get(field), str):
            named.append((words, other))
    conn = open_handle(Blocks, served.store, scope=served.scope).look()
    for pair in open_contradictions(conn, [name]):
        ends = (pair.data["block_a_id"], pair.data["block_b_id"])
        named.append(("contradicted by", ends[1] if ends[0] == name else ends[0]))
    links = sorted(shown_edges(conn, [name]), key=lambda link: -link.data["weight"])
    for link in links[:_LINKS]:
        ends = (link.data["from_id"], link.data["to_id"])
        named.append(("linked with", ends[1] if ends[0] == name else ends[0]))
    found = [_ground(1, words, block_key(other), served.door.get(block_key(other))) for words, other in named]
    return found, len(links[_LINKS:])


def _ground_line(ground: dict[str, Any]) -> str:
    facts = {"relation": ground["relation"], "id": short_id(ground["id"]), "status": ground["status"]}
    indent = "  " * ground["depth"]
    confidence = f" confidence={ground['confidence']:.3g}" if ground["confidence"] else ""
    return f"{indent}- {one_line(facts)}{confidence} text={quoted(ground['text'])}"
