"""The commands that verify a store, and show the events of a record and of the log."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from typer import Option

from chronomemory.blocks.life.outcomes import in_words
from chronomemory.bridge import EsdbBridge
from chronomemory.cli.options import MAX_SEQ, RecordId
from chronomemory.cli.output import Output, clean, size, spelled
from chronomemory.cli.session import FINDING, LOST, NotFoundError, ScopedTarget, Target
from chronomemory.cli.tables import damage_table, event_table, kind_table, op_text, pairs, table, time_text
from chronomemory.errors import HistoryUnavailable
from chronomemory.event import WalEvent
from chronomemory.face.results import counted
from chronomemory.layout import log_path
from chronomemory.record import is_same, leaves
from chronomemory.rollback import WHOLE_OPS, Rollback
from chronomemory.types import DAMAGED_SYNCED, VerifyReport
from chronomemory.updates import merged

_RUNGS = {
    "chain": "every line hashes and links to the one before",
    "remembered": "the end is the one remembered elsewhere",
    "signed": "a key kept outside the project vouches for it",
    "witnessed": "someone else has seen the same history",
}

_STATUS_FIELDS = ("valid", "rung", "remembered", "events", "first_seq", "last_seq", "head", "bytes", "base")


def status(at: Target) -> None:
    """Say what there is, and whether its chain holds."""
    with at.open() as here:
        if not log_path(at.project).exists():
            with EsdbBridge(at.project) as bridge:
                found = bridge.status().record_count
            if at.as_json:
                backend = "json files" if found else "none"
                here.out.document(_status(at.project, backend, found, {}, VerifyReport()))
            elif found:
                here.out.show(f"no log yet, but {found:,} records in JSON files; to bring them in:")
                here.out.show("  chronomemory migrate")
            else:
                here.out.show("no log yet; the first write makes one:")
                here.out.show("  chronomemory put FACT-1 --label 'Water boils at 100 °C'")
            return
        with here.out.progress("reading") as progress:
            report = here.store.verify(progress=progress)
        kinds: dict[str, dict[str, int]] = {}
        of_faces = 0
        for kind, its_status, of_face, number in here.store.engine.tally():
            counts = kinds.setdefault(kind, {})
            counts[its_status] = counts.get(its_status, 0) + number
            of_faces += number if of_face else 0
        active = here.store.record_count()
        if at.as_json:
            here.out.document(_status(at.project, "log", active, kinds, report))
        else:
            faces = f", {of_faces:,} of other faces" if of_faces else ""
            facts: dict[str, str | Text] = {
                "project": clean(at.project.resolve()),
                "chain": _verdict(report),
                "log": f"{_events(report)}, {size(report.bytes)}",
                "head": clean(report.head),
                "records": f"{active:,} active{faces}",
            }
            here.out.show(pairs(facts))
            if kinds:
                here.out.show("", kind_table(kinds))
    if not report.valid or report.altered_indexes:
        raise typer.Exit(FINDING)


def _status(
    project: Path, backend: str, records: int, kinds: dict[str, dict[str, int]], report: VerifyReport
) -> dict[str, Any]:
    document = report.to_dict()
    named = {"project": spelled(project), "backend": backend, "records": records, "kinds": kinds}
    return {**named, **{name: document[name] for name in _STATUS_FIELDS}}


def verify(at: Target) -> None:
    """Read every byte again and say what it proves.

    The exit code is 1 when the chain is invalid or an index was altered, and 3 when all is valid but the head
    that was seen here last is missing, or something that was erased is back.
    """
    with at.open() as here:
        started = time.perf_counter()
        with here.out.progress("verifying") as progress:
            report = here.store.verify(progress=progress)
        seconds = time.perf_counter() - started
        if at.as_json:
            here.out.document(report.to_dict())
        else:
            _tell(here.out, report, seconds)
    if not report.valid or report.altered_indexes:
        raise typer.Exit(FINDING)
    suspect = report.cut or report.returned or report.damaged_synced
    if suspect or report.remembered in ("lost", "unknown", "unreadable"):
        raise typer.Exit(LOST)


def _tell(out: Output, report: VerifyReport, seconds: float) -> None:
    if not report.events and not report.bytes and report.valid and report.remembered != "lost":
        out.show(
            "There is no log here: this project has no memory yet, or its log was removed.",
            "No chain can tell these two apart.",
        )
        return
    lines = f"{report.fast_lines:,} fast, {report.slow_lines:,} slow"
    facts: dict[str, str | Text] = {
        "verdict": _verdict(report),
        "log": f"{_events(report)}, {size(report.bytes)} read in {seconds:.2f} s",
        "lines": lines + (f", {report.blank_lines:,} blank" if report.blank_lines else ""),
        "head": clean(report.head),
    }
    if report.base != "none":
        facts["base"] = Text(report.base, style="green" if report.base == "anchored" else "yellow")
    out.show(pairs(facts))
    if report.damage:
        out.show("", Text("What is damaged", style="bold red"), damage_table(report.damage))
    if report.altered_indexes:
        out.show(
            "", Text("Which indexes are altered", style="bold red"), damage_table(report.altered_indexes)
        )
        out.show("      the log is none the worse; a search may have missed something")
    if report.returned:
        out.show("", Text("What was erased and is back", style="bold red"), damage_table(report.returned))
    if report.tail:
        out.show("", Text.assemble(("tail  ", "bold yellow"), clean(report.tail)))
        if report.tail.events:
            out.show("      before anything is written, chronomemory repair takes back what is whole")
        else:
            out.show("      an interrupted write, never acknowledged; the next write puts it aside")
    notes: list[tuple[str, object]] = [("synced  ", DAMAGED_SYNCED)] if report.damaged_synced else []
    notes += [("scope ", finding) for finding in report.scopes] + [("note  ", note) for note in report.notes]
    for label, note in notes:
        out.show(Text.assemble((label, "bold yellow"), clean(note)))
    rungs = table("rung", "verdict", "what it would mean")
    for name, verdict in report.rungs.items():
        style = {"ok": "green", "corrupt": "bold red", "lost": "bold red"}.get(verdict, "yellow")
        rungs.add_row(name, Text(verdict, style=style), Text(_RUNGS.get(name, ""), style="dim"))
    out.show("", rungs)
    if report.remembered_reason:
        out.show(
            "", Text.assemble((f"{report.remembered}  ", "bold yellow"), clean(report.remembered_reason))
        )
    if report.remembered in ("lost", "unknown", "unreadable"):
        out.show("      if that was meant, such as a checkout: chronomemory accept-head")
    if report.damage:
        out.show("", "Every good line can still be read. There are two ways to go on:")
        out.show("  chronomemory repair    keeps the damaged bytes and starts a clean log")
        out.show("  chronomemory restore   goes back to a backup")
    elif report.altered_indexes:
        out.show("", "Indexes are made again from the log when they are gone. To remove them:")
        out.show("  chronomemory repair")


def accept_head(at: Target) -> None:
    """Take the log as it is for the right one, after a change that was meant, such as a checkout."""
    with at.open() as here:
        with warnings.catch_warnings():
            # What opening would warn of is what this command is for.
            warnings.simplefilter("ignore", RuntimeWarning)
            here.store.upkeep.accept_head()
            report = here.store.verify()
        if at.as_json:
            here.out.document({"seq": report.last_seq, "head": report.head, "rung": report.rung})
        else:
            here.out.done(f"accepted: {_events(report)}" if report.events else "accepted: no log")


def _verdict(report: VerifyReport) -> Text:
    if report.valid:
        return Text(report.rung, style="bold red" if report.altered_indexes else "bold green")
    places = counted(len(report.damage), "damaged place")
    return Text(f"{report.rung}: {places}", style="bold red")


def _events(report: VerifyReport) -> str:
    if not report.events:
        return "no events"
    return f"{counted(report.events, 'event')}, seq {report.first_seq or 0:,} to {report.last_seq:,}"


_ROWS_SHOWN = 50


def history(record_id: RecordId, *, at: ScopedTarget) -> None:
    """Tell the life of one record; with --json its events."""
    with at.open() as here:
        lines = here.door.engine.history(record_id)
        if not lines:
            record = here.door.get(record_id)
            if record is None:
                here.warn_unknown_scope()
                raise NotFoundError(f"there is no record {record_id!r}", recovery="Check the id.")
            since = (
                "" if record.updated_seq is None else f"; event {record.updated_seq:,} was the last of them"
            )
            raise HistoryUnavailable(
                f"the events of {record_id!r} were dropped by a compaction{since}",
                recovery="get shows the record as it is; a backup from before may have its events.",
            )
        if at.as_json:
            here.out.lines(lines)
        else:
            here.out.show(_history_table(_events_of(lines), record_id, here.door.rollbacks(record_id)))


def replay(
    from_seq: Annotated[int, Option(min=0, max=MAX_SEQ, help="Begin here.")] = 0,
    limit: Annotated[
        int | None,
        Option(
            metavar="N", min=1, max=MAX_SEQ, help=f"The number of rows at most; a table shows {_ROWS_SHOWN}."
        ),
    ] = None,
    *,
    at: Target,
) -> None:
    """List the events of the log; with --json its lines as they are."""
    with at.open() as here:
        lines = here.store.engine.replay(from_seq)
        if at.as_json:
            here.out.lines(lines[:limit])
        elif not lines:
            here.out.show("no such events")
        else:
            shown = limit or _ROWS_SHOWN
            here.out.show(event_table(_events_of(lines[:shown])))
            if len(lines) > shown:
                here.out.hint(f"and {len(lines) - shown:,} more (--limit, --from-seq)")


def _events_of(lines: list[bytes]) -> list[WalEvent]:
    return [WalEvent.from_json_line(line) for line in lines]


def _history_table(events: Iterable[WalEvent], record_id: str, touched: Sequence[Rollback] = ()) -> Table:
    """Tell the life of one record: what each event changed, and for those of a rollback, why."""
    reasons: dict[int | None, Text] = {}
    for rollback in touched:
        reasons[rollback.seq] = _because("by", rollback.rollback_id, rollback.reason)
        if rollback.reinstated is not None:
            reasons[rollback.reinstated_seq] = _because(
                "taken back:", rollback.rollback_id, rollback.reinstated
            )
    made = table("seq", "time (UTC)", "op", "what changed", right=("seq",))
    before: dict[str, Any] | None = None
    for event in events:
        fields = event.record or {}
        when = clean(event.seq), Text(time_text(event.ts), style="dim"), op_text(event.op)
        if event.op == "act":
            # It says what happened to several records; what became of this one is the engine's to tell.
            made.add_row(*when, clean(in_words(fields, record_id)))
            continue
        # A patch and a deletion name only what they change; an upsert says everything.
        now = dict(fields) if event.op in WHOLE_OPS else merged(before or {}, fields)
        story = _story(before, now)
        because = reasons.get(event.seq)
        made.add_row(*when, story if because is None else Text.assemble(story, "\n", because))
        before = now
    return made


def _because(how: str, rollback_id: str, reason: str) -> Text:
    return Text.assemble((f"{how} ", "dim"), (clean(rollback_id), "cyan"), f" “{clean(reason)}”")


def _story(before: dict[str, Any] | None, now: dict[str, Any]) -> Text:
    if before is None:
        known: dict[str, Any] = {name: now[name] for name in ("label", "status", "confidence") if name in now}
        data = now.get("data")
        if not known.get("label") and isinstance(data, dict) and data.get("content"):
            known.pop("label", None)
            known = {"content": data["content"], **known}
        return Text("\n").join(Text.assemble((f"{name} ", "dim"), _text(v)) for name, v in known.items())
    old, new = leaves(before), leaves(now)
    changed = [name for name in {**old, **new} if not is_same(old.get(name), new.get(name))]
    if not changed:
        return Text("nothing", style="dim")
    return Text("\n").join(
        Text.assemble((f"{clean(name)} ", "dim"), _text(old.get(name)), " → ", (_text(new.get(name)), "bold"))
        for name in changed
    )


def _text(value: Any) -> str:
    if value is None:
        return "(none)"
    return clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
