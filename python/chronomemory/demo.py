"""Shows what this package does, in 80 columns: ``chronomemory demo``."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from chronomemory._core import file_holds
from chronomemory.blocks import Memory
from chronomemory.cli.output import size
from chronomemory.cli.tables import change_table, confidence_text, damage_table, status_text
from chronomemory.deps import DepGraph
from chronomemory.face.results import counted
from chronomemory.layout import log_folder, log_path
from chronomemory.record import ChronoRecord
from chronomemory.store import ChronoStore

_RECORDS = 50_000
_WIDTH = 80
_USER = "ann"
_MEMORIES = ("Ann travels by train and avoids planes", "Ann lives in Bergen", "Ann is allergic to nuts")

_FACT = "FACT-RETRIES"
_FACT_LABEL = "The payment API retries at most 3 times"
_REASON = "unlimited since version 2"
_DECISION = "DECISION-TIMEOUT"


def show(console: Console, folder: Path, records: int = _RECORDS) -> None:
    """Run every step in an empty folder."""
    title = (" chronomemory ", "bold black on green")
    console.print(Text.assemble(title, ("  memory for AI agents in one SHA-256 chained log", "bold")))
    _memory(console, folder / "agent")
    project = folder / "project"
    project.mkdir()
    with ChronoStore(project, head_file=folder / "head.json") as store:
        _records(console, store, records, folder / "copy")
    console.print("\nWhere to go next", style="bold")
    rows = Table.grid(padding=(0, 3))
    rows.add_row("  chronomemory learn 'Deploys run from main'", "your first memory")
    rows.add_row("  chronomemory help", "every command")
    rows.add_row("  README.md, docs/guide/", "the Python side, face by face")
    rows.columns[0].style = "cyan"
    console.print(rows)


def _memory(console: Console, project: Path) -> None:
    """Remember, recall, forget and erase what an agent knows about a user."""
    project.mkdir()
    _head(console, "Remember", 'Memory("agent", user="ann").remember("…")')
    with Memory(project, user=_USER) as memory:
        for text in _MEMORIES:
            memory.remember(text)
    _body(console, f"{len(_MEMORIES)} memories are kept; the rest happens after a restart")
    question = "how does Ann travel?"
    with Memory(project, user=_USER) as memory:
        _head(console, "Recall", f'memory.recall("{question}")')
        best = memory.recall(question, top_k=1)[0]
        _body(console, Text.assemble((f"{best.score:.2f}", "green"), f"   {best.content}"))
        _head(console, "Prompt a model", 'memory.frame("attention", "plan a trip").text')
        _body(console, memory.frame("attention", "plan a trip").text)
        _head(console, "Forget", "memory.forget(id)")
        memory.forget(best.id)
        left = [block.content for block in memory.recall(question)]
        events = counted(len(memory.history(best.id)), "event")
        _body(console, f"recall has it: {best.content in left}; its history still has {events}")
    _head(console, "Erase", f'store.erase(scope={{"user": "{_USER}"}}, reason="on request")')
    with ChronoStore(project) as store:
        store.erase(scope={"user": _USER}, reason="on request")
        files = [path for path in log_folder(project).rglob("*") if path.is_file()]
        words = [text.encode() for text in _MEMORIES]
        holding = sum(file_holds(path, words) for path in files)
        verdict = store.verify()
    _body(console, f"{holding} of {len(files)} files still hold any of these texts; chain: {verdict.rung}")
    _head(console, "Use an assistant", "chronomemory mcp install claude-code")
    _body(console, "Claude Code, Cursor, VS Code … get tools to search, add and delete memories")


def _records(console: Console, store: ChronoStore, records: int, copy: Path) -> None:
    """Load records, explain, find, roll back and verify them, and catch a forged copy."""
    _head(console, "Load records", "store.ingest(rows)")
    rows = [{"id": f"NOTE-{n:05}", "label": f"build {n} answered in {n % 900} ms"} for n in range(records)]
    started = time.perf_counter()
    store.ingest(rows)
    seconds = time.perf_counter() - started
    rate = f"{records / seconds:,.0f} a second"
    _body(console, f"{records:,} records in {seconds:.2f} s: {rate}, hashed and chained")

    fact = ChronoRecord(id=_FACT, label=_FACT_LABEL, confidence=0.6, evidence=["docs/payments.md, line 42"])
    store.upsert(fact)
    fact.confidence = 0.95
    fact.evidence.append("load test of 2026-03-02")
    store.upsert(fact)
    store.upsert(ChronoRecord(id=_DECISION, kind="decision", label="10 s are enough", confidence=0.9))
    DepGraph(store).add_edge(_DECISION, _FACT, "depends_on")
    _head(console, "Know why", f'store["{_FACT}"], store.history("{_FACT}")')
    known, seq = store[_FACT], store.wal_seq()
    grounds = Table.grid(padding=(0, 3))
    grounds.add_row("belief", Text(known.label, style="bold"))
    grounds.add_row("evidence", Text("\n".join(known.evidence), style="green"))
    for event in store.history(_FACT):
        confidence = confidence_text((event.record or {}).get("confidence"))
        chained = (f"   sha256 {event.hash[:12]}… after {event.prev_hash[:12]}…", "dim")
        grounds.add_row(f"event {event.seq:,}", Text.assemble("confidence ", confidence, chained))
    grounds.columns[0].style = "dim"
    _body(console, grounds)

    question = "how often does the payment API retry?"
    store.search(question)  # the first search makes the index
    _head(console, "Find", f'store.search("{question}")')
    started = time.perf_counter()
    hit = store.search(question, limit=1)[0]
    took = f"in {(time.perf_counter() - started) * 1000:.1f} ms"
    _body(console, Text.assemble((hit.id, "cyan"), f"   {hit.record.label}   ", (took, "dim")))

    _head(console, "Roll back", f'store.invalidate("{_FACT}", "{_REASON}")')
    report = store.invalidate(_FACT, _REASON)
    _body(console, change_table([*filter(None, [report.direct_change]), *report.cascaded]))

    _head(console, "Look back", f'store.as_of({seq}).get("{_DECISION}")')
    lines = Text()
    for name, record in (("then: ", store.as_of(seq).get(_DECISION)), ("   now: ", store.get(_DECISION))):
        if record is not None:
            lines += Text.assemble(name, status_text(record.status), " ", confidence_text(record.confidence))
    _body(console, lines)

    _head(console, "Verify", "store.verify()", "reads every byte on disk again")
    started = time.perf_counter()
    proof = store.verify()
    seconds = time.perf_counter() - started
    verdict = (proof.rung, "bold green" if proof.valid else "bold red")
    facts = f": {proof.events:,} events, {size(proof.bytes)} in {seconds:.2f} s"
    _body(console, Text.assemble(verdict, facts))

    _head(console, "Catch a forger", "ChronoStore(copy).verify()", "3 times became 9 times")
    store.sync()
    shutil.copytree(log_folder(store.project_root), log_folder(copy))
    at = log_path(copy).read_bytes().index(_FACT_LABEL.encode()) + _FACT_LABEL.index("3")
    with log_path(copy).open("r+b") as file:
        file.seek(at)
        file.write(b"9")
    _body(console, damage_table(ChronoStore(copy).verify().damage))


def _head(console: Console, title: str, call: str, remark: str = "") -> None:
    console.print()
    console.print(
        Text.assemble(("▍ ", "green"), (f"{title:<17}", "bold"), (call, "cyan"), (f"  {remark}", "dim"))
    )


def _body(console: Console, thing: RenderableType) -> None:
    console.print(Padding(thing, (0, 0, 0, 2), expand=False))


def demo(
    records: Annotated[int, typer.Option(min=10, max=10**7, help="How many records to load.")] = _RECORDS,
) -> None:
    """Show what chronomemory does; nothing is left behind."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.width = min(console.width, _WIDTH)
    try:
        with tempfile.TemporaryDirectory(prefix="chronomemory-demo-") as folder:
            show(console, Path(folder), records)
    except Exception as error:  # a demo must end in words whatever happens
        console.print(Text(f"The demo could not go on: {error}", style="bold red"))
        raise typer.Exit(1) from None


if __name__ == "__main__":
    typer.run(demo)
