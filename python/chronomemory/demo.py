"""Shows what this package does, on one screen: ``python -m chronomemory.demo``."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from chronomemory.cli.output import counted, size
from chronomemory.cli.tables import (
    confidence_step,
    confidence_text,
    damage_table,
    status_step,
    status_text,
    table,
)
from chronomemory.deps import DepGraph
from chronomemory.layout import log_folder, log_path
from chronomemory.record import ChronoRecord
from chronomemory.store import ChronoStore

__all__ = ["main", "show"]

_RECORDS = 50_000
_WIDTH = 100
_SERVICES = ("checkout", "payments", "search", "mail", "login", "stock", "prices", "reports")
_SIGHTS = ("answers in {} ms", "was deployed as build {}", "logged {} errors an hour", "used {} MB of memory")

_FACT = "FACT-RETRIES"
_FACT_LABEL = "The payment API retries at most 3 times"
_REASON = "unlimited since version 2"
_BELIEFS = (
    ("DECISION-TIMEOUT", "decision", "A timeout of 10 s is enough for a payment", 0.9),
    ("RISK-ALARM", "risk", "An alarm at 12 s finds every stuck checkout", 0.8),
)


def show(console: Console, folder: Path, records: int = _RECORDS) -> None:
    """Play the whole story in an empty folder."""
    project = folder / "project"
    project.mkdir()
    console.print(
        Text.assemble(
            (" chronomemory ", "bold black on green"),
            ("  memory for agents: every belief is an event in one SHA-256 chained log", "bold"),
        )
    )
    with ChronoStore(project, head_file=project.with_name(f"{project.name}-head.json")) as store:
        _load(console, store, _notes(folder / "notes.ndjson", records))
        _ask(console, store)
        known = _believe(console, store)
        _find(console, store)
        _doubt(console, store)
        _look_back(console, store, known)
        _verify(console, store)
        _tamper(console, store, folder / "copy")
        _compact(console, store)
    _point_on(console)


def _notes(path: Path, records: int) -> Path:
    """Write what an agent may have noted, the same notes every time."""
    dice = random.Random(7)
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, records + 1):
            service = dice.choice(_SERVICES)
            amount = dice.randint(1, 900)
            note = {
                "id": f"NOTE-{number:05}",
                "label": f"{service} {dice.choice(_SIGHTS).format(amount)}",
                "confidence": dice.randint(30, 100) / 100,
                "evidence": [f"logs/{service}.log, line {dice.randint(1, 99_999)}"],
                "data": {"service": service, "amount": amount},
            }
            file.write(json.dumps(note) + "\n")
    return path


def _load(console: Console, store: ChronoStore, notes: Path) -> None:
    _head(console, "Load", 'store.ingest("notes.ndjson")')
    columns = (
        TextColumn("  "),
        BarColumn(bar_width=30, complete_style="cyan", finished_style="green"),
        TaskProgressColumn(),
        TextColumn("{task.fields[said]}"),
    )
    with Progress(*columns, console=console) as bars:
        bar = bars.add_task("", total=notes.stat().st_size, said="")
        started = time.perf_counter()
        report = store.ingest(notes, progress=lambda done, _: bars.update(bar, completed=done))
        seconds = time.perf_counter() - started
        rate = report.records / seconds
        said = f"{report.records:,} records in {seconds:.2f} s: {rate:,.0f} a second, hashed and chained"
        bars.update(bar, completed=report.bytes, said=said)


def _ask(console: Console, store: ChronoStore) -> None:
    _head(console, "Ask", "store.query(rag_filter=True)", "only what is believed enough for a prompt")
    started = time.perf_counter()
    found = store.query(rag_filter=True)
    seconds = time.perf_counter() - started
    rows = Table.grid(padding=(0, 3))
    for record in found[:2]:
        rows.add_row(
            Text(record.id, style="cyan"),
            confidence_text(record.confidence),
            record.label,
            Text(record.evidence[0], style="dim"),
        )
    _body(console, rows)
    count = f"… {len(found):,} of {store.record_count():,} records in {seconds * 1000:.0f} ms"
    _body(console, Text(count, style="dim"))


def _believe(console: Console, store: ChronoStore) -> int:
    """Learn something, learn it better, build on it; say when all of it was known."""
    fact = ChronoRecord(id=_FACT, label=_FACT_LABEL, confidence=0.6, evidence=["docs/payments.md, line 42"])
    store.upsert(fact)
    fact.confidence = 0.95
    fact.evidence.append("load test of 2026-03-02")
    store.upsert(fact)
    store.upsert_many(ChronoRecord(id=i, kind=k, label=text, confidence=c) for i, k, text, c in _BELIEFS)
    graph = DepGraph(store)
    graph.add_edge(_BELIEFS[0][0], _FACT, "depends_on")
    graph.add_edge(_BELIEFS[1][0], _BELIEFS[0][0], "derived_from")
    _head(console, "Know why", f'store.get("{_FACT}"), store.history("{_FACT}")')
    known = store.get(_FACT) or fact
    rows = Table.grid(padding=(0, 3))
    rows.add_row("belief", Text(known.label, style="bold"))
    rows.add_row("evidence", Text(" · ").join(Text(item, style="green") for item in known.evidence))
    for event in store.history(_FACT):
        written = event.record or {}
        rows.add_row(
            f"event {event.seq:,}",
            Text.assemble(
                "confidence ",
                confidence_text(written.get("confidence")),
                f" from {counted(len(written.get('evidence', ())), 'source'):<12}",
                (f"sha256 {event.hash[:16]}… after {event.prev_hash[:16]}…", "dim"),
            ),
        )
    rows.columns[0].style = "dim"
    _body(console, rows)
    return store.wal_seq()


def _find(console: Console, store: ChronoStore) -> None:
    question = "how often does the payment API retry?"
    store.search(question)  # the first search makes the index
    _head(console, "Find", f'store.search("{question}")', "by words and links")
    started = time.perf_counter()
    found = store.search(question, limit=2)
    seconds = time.perf_counter() - started
    rows = Table.grid(padding=(0, 3))
    for hit in found:
        rows.add_row(Text(hit.id, style="cyan"), f"{hit.score:.1f}", hit.record.label)
    _body(console, rows)
    _body(
        console, Text(f"the best of {store.record_count():,} records in {seconds * 1000:.1f} ms", style="dim")
    )


def _doubt(console: Console, store: ChronoStore) -> None:
    _head(console, "Roll back", f'store.invalidate("{_FACT}", "{_REASON}")', "one atomic batch")
    graph = DepGraph.from_store(store)
    report = store.invalidate(_FACT, _REASON, graph)
    rows = table("record", "rests on", "status", "confidence")
    for change in (*filter(None, [report.direct_change]), *report.cascaded):
        ground = graph.successors(change.record_id) or ["its evidence"]
        rows.add_row(
            Text(change.record_id, style="cyan"),
            ", ".join(ground),
            status_step(change.previous_status, change.new_status),
            confidence_step(change.previous_confidence, change.new_confidence),
        )
    _body(console, rows)


def _look_back(console: Console, store: ChronoStore, seq: int) -> None:
    _head(console, "Look back", f'store.as_of({seq}).get("{_BELIEFS[0][0]}")')
    then, now = store.as_of(seq).get(_BELIEFS[0][0]), store.get(_BELIEFS[0][0])
    said = Text()
    for name, record in ((f"at event {seq:,}: ", then), ("   now: ", now)):
        if record is not None:
            said += Text.assemble(name, status_text(record.status), " ", confidence_text(record.confidence))
    _body(console, said)


def _verify(console: Console, store: ChronoStore) -> None:
    _head(console, "Verify", "store.verify()", "reads every byte on disk again")
    started = time.perf_counter()
    report = store.verify()
    seconds = time.perf_counter() - started
    _body(
        console,
        Text.assemble(
            (report.rung, "bold green" if report.valid else "bold red"),
            f": {report.events:,} events, {size(report.bytes)} in {seconds:.2f} s; ",
            ("signed, witnessed: cannot tell yet", "yellow"),
        ),
    )


def _tamper(console: Console, store: ChronoStore, copy: Path) -> None:
    _head(console, "Catch a forger", "ChronoStore(copy).verify()", "someone made 3 times into 9 times there")
    store.sync()
    shutil.copytree(log_folder(store.project_root), log_folder(copy))
    log = log_path(copy)
    text = log.read_bytes()
    at = text.index(_FACT_LABEL.encode()) + _FACT_LABEL.index("3")
    with log.open("r+b") as file:
        file.seek(at)
        file.write(b"9")
    _body(console, damage_table(ChronoStore(copy).verify().damage))


def _compact(console: Console, store: ChronoStore) -> None:
    _head(
        console, "Compact", "store.compact()", "the old log goes into the archive, its hash into the new one"
    )
    log = log_path(store.project_root)
    before = log.stat().st_size
    events = store.compact()
    after = log.read_bytes()
    lines = counted(after.count(b"\n"), "line")
    verdict = store.verify()
    _body(
        console,
        Text.assemble(
            f"{events:,} lines, {size(before)} → ",
            (f"{lines}, {size(len(after))}", "bold"),
            f"; {store.record_count():,} records; ",
            (verdict.rung, "bold green" if verdict.valid else "bold red"),
        ),
    )


def _point_on(console: Console) -> None:
    console.print()
    console.print(Text("Where to go next", style="bold"))
    rows = Table.grid(padding=(0, 3))
    rows.add_row("  chronomemory put FACT-1 --label 'Water boils at 100 °C'", "your first belief")
    rows.add_row("  chronomemory --help", "every command")
    rows.add_row("  README.md, docs/guide/", "the Python side, face by face")
    rows.columns[0].style = "cyan"
    console.print(rows)


def _head(console: Console, title: str, call: str, remark: str = "") -> None:
    console.print()
    console.print(
        Text.assemble(("▍ ", "green"), (f"{title:<17}", "bold"), (call, "cyan"), (f"  {remark}", "dim")),
    )


def _body(console: Console, thing: RenderableType) -> None:
    console.print(Padding(thing, (0, 0, 0, 2)))


def _run(
    records: Annotated[int, typer.Option(min=10, max=10**7, help="How many records to load.")] = _RECORDS,
) -> None:
    """Show what chronomemory does, on one screen; nothing is left behind."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.width = min(console.width, _WIDTH)
    try:
        with tempfile.TemporaryDirectory(prefix="chronomemory-demo-") as folder:
            show(console, Path(folder), records)
    except Exception as error:  # a demo must end in words whatever happens
        console.print(Text(f"The demo could not go on: {error}", style="bold red"))
        raise typer.Exit(1) from None


def main() -> None:
    """Run the demo."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(_run)
    app()


if __name__ == "__main__":
    main()
