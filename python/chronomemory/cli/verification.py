"""The commands that verify a store."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from chronomemory.bridge import EsdbBridge
from chronomemory.cli.output import Output, clean, counted, size, spelled
from chronomemory.cli.session import FINDING, LOST, Target
from chronomemory.cli.tables import damage_table, kind_table, pairs, table
from chronomemory.layout import log_path
from chronomemory.types import DAMAGED_SYNCED, VerifyReport

#: What each rung would mean; the verdict itself comes from the report.
_RUNGS = {
    "chain": "every line hashes and links to the one before",
    "remembered": "the end is the one remembered elsewhere",
    "signed": "a key kept outside the project vouches for it",
    "witnessed": "someone else has seen the same history",
}

#: What of a report belongs into a status.
_STATUS_FIELDS = ("valid", "rung", "remembered", "events", "first_seq", "last_seq", "head", "bytes", "base")


def status(at: Target) -> None:
    """Say what there is, and whether its chain holds."""
    with at.open() as here:
        if not log_path(at.project).exists():
            _tell_of_no_log(at.project, here.out)
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


def _tell_of_no_log(project: Path, out: Output) -> None:
    with EsdbBridge(project) as bridge:
        found = bridge.status().record_count
    if out.as_json:
        out.document(_status(project, "json files" if found else "none", found, {}, VerifyReport()))
    elif found:
        out.show(f"no log yet, but {found:,} records in JSON files; to bring them in:")
        out.show("  chronomemory migrate")
    else:
        out.show("no log yet; the first write makes one:")
        out.show("  chronomemory put FACT-1 --label 'Water boils at 100 °C'")


def verify(at: Target) -> None:
    """Read every byte again and say what it proves.

    The exit code is 1 when the chain is invalid or an index was altered, and 3 when all is valid but
    lacks the head that was seen here last, or the history that leads from it: its end was cut off, or
    another log was put in its place, or the note about it or the file synced cannot be read; also 3
    when something that was erased is back. A rung that is not built says that it cannot tell.
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
    if report.damaged_synced:
        out.show(Text.assemble(("synced  ", "bold yellow"), DAMAGED_SYNCED))
    for finding in report.scopes:
        out.show(Text.assemble(("scope ", "bold yellow"), clean(finding)))
    for note in report.notes:
        out.show(Text.assemble(("note  ", "bold yellow"), clean(note)))
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
    """Take the log as it is for the right one, after a change that was meant.

    A checkout or a copy by hand may put a log here that lacks what was seen before: verify then
    says that the remembered head is lost, until you say that all is well.
    """
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
