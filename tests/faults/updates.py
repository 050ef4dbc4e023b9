"""If many processes read, change and write the same records at once, every change is there.

Each process does what a caller does who reads first: `update`, `invalidate`, `put` on the command line, the
bridge, batches of blocks, edges whose records want the same id. It keeps books of what was acknowledged, in
a file that a kill does not take back. Another compacts, and some are killed: what was under way then may be
there or not, all else must be.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
from chronomemory import ChronoRecord, ChronoStore, DepGraph, EsdbBridge, EsdbRecord
from chronomemory.blocks import open_blocks, sync
from chronomemory.cli import app
from crowd import start, wait_for
from typer.testing import CliRunner

PROCESSES = 4
DEEDS_THOROUGH, RACES_THOROUGH = 400, 9
REST_SECONDS, HOLD_SECONDS = 0.02, 0.004
HOLDER = "holder"
NOTED = ("FIELDS", *(f"{kind}-{name}" for kind in ("REST", "B") for name in range(PROCESSES)))
BLOCK = "shared"

Deed = Callable[[ChronoStore, str, int], None]


def counted(store: ChronoStore, name: str, number: int) -> None:
    """Count one up in a record that all share."""

    def change(record: ChronoRecord | None) -> ChronoRecord:
        record = record or ChronoRecord(id="COUNTER")
        record.data = {**record.data, name: record.data.get(name, 0) + 1}
        return record

    store.update("COUNTER", change)


def put(store: ChronoStore, name: str, number: int) -> None:
    """Change one field on the command line; the others are somebody else's."""
    words = ["put", "FIELDS", "--label", f"{name}-{number}", "--project", str(store.project_root)]
    if name == "0":
        words[2:4] = ["--confidence", str(number % 100 / 100)]
    elif name != "1":
        return
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output


def bridged(store: ChronoStore, name: str, number: int) -> None:
    """Write one's own record through the bridge, beside those who doubt it."""
    with EsdbBridge(store.project_root) as bridge:
        bridge.upsert_record(EsdbRecord(id=f"B-{name}", label=str(number)))


def doubted(store: ChronoStore, name: str, number: int) -> None:
    """Count one up in a record of one's own, then doubt what it rests on, as everybody does."""

    def change(record: ChronoRecord | None) -> ChronoRecord:
        record = record or ChronoRecord(id=f"REST-{name}")
        record.data = {"count": record.data.get("count", 0) + 1}
        record.status = "active"
        return record

    store.update(f"REST-{name}", change)
    store.invalidate("GROUND", f"{name} {number}", DepGraph.from_store(store))


def reinforced(store: ChronoStore, name: str, number: int) -> None:
    """Count one use of a block that all share."""
    open_blocks(store).run(lambda conn: sync.reinforce_blocks(conn, [BLOCK], float(number)))


def linked(store: ChronoStore, name: str, number: int) -> None:
    """Add an edge; those of a number all ask for the record EDGE-N-…-a-b-c-d-supports."""
    parts = [str(number), "a", "b", "c", "d", "e"]
    at = int(name) % (len(parts) - 1) + 1
    DepGraph(store).add_edge("-".join(parts[:at]), "-".join(parts[at:]), "supports")


DEEDS_BY_NAME: dict[str, Deed] = {
    deed.__name__: deed for deed in (counted, put, bridged, doubted, reinforced, linked)
}


def doer(name: str, seed: int, deeds: int, books: Path) -> Callable[[ChronoStore, Path], None]:
    def work(store: ChronoStore, _: Path) -> None:
        rng = random.Random(f"{seed}-{name}")
        with books.open("a", buffering=1) as book:
            for number in range(deeds):
                deed = rng.choice(sorted(DEEDS_BY_NAME))
                book.write(json.dumps({"deed": deed, "number": number, "told": False}) + "\n")
                DEEDS_BY_NAME[deed](store, name, number)
                book.write(json.dumps({"deed": deed, "number": number, "told": True}) + "\n")

    return work


def compactor(store: ChronoStore, stop: Path) -> None:
    while not stop.exists():
        store.compact()
        time.sleep(REST_SECONDS)


def holder(books: Path) -> Callable[[ChronoStore, Path], None]:
    """Keep the lock while others have read and wait, and change just then what they have read."""

    def work(store: ChronoStore, stop: Path) -> None:
        number = 0
        store.close()
        with books.open("a", buffering=1) as book:
            while not stop.exists():
                with ChronoStore(store.project_root, exclusive=True, own_engine=True, lock_timeout=60) as own:
                    time.sleep(HOLD_SECONDS)
                    for deed in ("counted", "reinforced"):
                        DEEDS_BY_NAME[deed](own, HOLDER, number)
                        book.write(json.dumps({"deed": deed, "number": number, "told": True}) + "\n")
                    for record_id in NOTED:
                        if noted(own, record_id):
                            entry = {"deed": f"noted {record_id}", "number": number, "told": True}
                            book.write(json.dumps(entry) + "\n")
                number += 1
                time.sleep(REST_SECONDS)

    return work


def noted(store: ChronoStore, record_id: str) -> bool:
    """Count up a field that nobody else changes: whoever writes an old copy of the record takes it back."""
    record = store.get(record_id)
    if record is not None:
        record.model_assumptions = {"notes": record.model_assumptions.get("notes", 0) + 1}
        store.upsert(record)
    return record is not None


def read_books(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the deeds that were acknowledged, and the one that was under way."""
    lines = path.read_text().split("\n") if path.exists() else []
    entries = [json.loads(line) for line in lines if line.endswith("}")]
    told = [entry for entry in entries if entry["told"]]
    return told, None if not entries or entries[-1]["told"] else entries[-1]


def judge(project: Path, names: list[str]) -> tuple[list[str], int]:
    """Compare the store with the books; return what is wrong, and how many deeds were acknowledged."""
    wrong = [path.read_text().strip().splitlines()[-1] for path in sorted(project.glob("failed-*"))]
    books = {name: read_books(project / f"book-{name}") for name in names}
    deeds = sum(len(told) for told, _ in books.values())

    def check(what: str, seen: float, deed: str, of: list[str]) -> None:
        least = sum(entry["deed"] == deed for name in of for entry in books[name][0])
        most = least + sum(1 for name in of if (books[name][1] or {}).get("deed") == deed)
        if not least <= seen <= most:
            wrong.append(f"{what}: {seen} of {least} to {most}")

    with ChronoStore(project / "p") as store:
        counter = store.get("COUNTER")
        edges = {(edge.from_id, edge.to_id) for edge in DepGraph.from_store(store).edges()}
        with open_blocks(store).connect() as conn:
            check("uses", sync.get_block(conn, BLOCK)["reinforcement_count"], "reinforced", names)
        for record_id in NOTED:
            record = store.get(record_id)
            notes = record.model_assumptions.get("notes", 0) if record else 0
            check(f"notes on {record_id}", notes, f"noted {record_id}", [HOLDER])
        for name in names:
            told, _ = books[name]
            last = {entry["deed"]: entry["number"] for entry in told}
            check(f"counter of {name}", (counter.data if counter else {}).get(name, 0), "counted", [name])
            rest = store.get(f"REST-{name}")
            check(f"rest of {name}", rest.data.get("count", 0) if rest else 0, "doubted", [name])
            bridge = store.get(f"B-{name}")
            if "bridged" in last and (bridge is None or int(bridge.label) < last["bridged"]):
                wrong.append(f"the bridge of {name} is at {bridge and bridge.label}, not {last['bridged']}")
            fields = store.get("FIELDS")
            if "put" in last and (books[name][1] or {}).get("deed") != "put":
                wanted = {"0": str(last["put"] % 100 / 100), "1": f"1-{last['put']}"}.get(name)
                seen = {"0": str(fields.confidence), "1": fields.label}.get(name)
                if seen != wanted:
                    wrong.append(f"the field of {name} is {seen}, not {wanted}")
            for entry in told:
                if entry["deed"] == "linked":
                    parts = [str(entry["number"]), "a", "b", "c", "d", "e"]
                    at = int(name) % (len(parts) - 1) + 1
                    if ("-".join(parts[:at]), "-".join(parts[at:])) not in edges:
                        wrong.append(f"the edge {entry['number']} of {name} is lost")
        if not store.chain_valid():
            wrong.append("the chain is not valid")
    return wrong, deeds


def prepare(project: Path) -> None:
    with ChronoStore(project / "p") as store:
        store.upsert_many([{"id": "GROUND"}, {"id": "FIELDS", "evidence": ["first"]}])
        graph = DepGraph(store)
        for name in range(PROCESSES):
            graph.add_edge(f"REST-{name}", "GROUND", "depends_on")
        with open_blocks(store).begin() as conn:
            sync.insert_block(conn, block_id=BLOCK, content="c", category="c", source="s")


def race(project: Path, seed: int, deeds: int, *, kills: int) -> tuple[list[str], int, int]:
    """Let all of them go at once; return what is wrong, how many deeds were acknowledged, how many killed."""
    prepare(project)
    names = [str(number) for number in range(PROCESSES)]
    busy = {
        start(project, name, "off", doer(name, seed, deeds, project / f"book-{name}")): name for name in names
    }
    care = {start(project, "compactor", "off", compactor): "compactor"}
    care[start(project, HOLDER, "off", holder(project / f"book-{HOLDER}"))] = HOLDER
    rng = random.Random(seed)
    killed = rng.sample(list(busy), min(kills, len(busy)))
    for pid in killed:
        time.sleep(rng.random() * 0.5)
        os.kill(pid, signal.SIGKILL)
    wrong = wait_for(busy, 300)
    (project / "stop").touch()
    wrong += wait_for(care, 60)
    found, told = judge(project, [*names, HOLDER])
    return wrong + found, told, len(killed)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Let several processes change what they have read, at once."""
    deeds = DEEDS_THOROUGH if order.thorough else max(1, order.runs)
    races = RACES_THOROUGH if order.thorough else 1
    for number in range(races):
        with harness.project(f"updates-{number}", outcome) as project:
            wrong, told, killed = race(project, order.seed + number, deeds, kills=number % 3)
            outcome.count("deeds acknowledged", told)
            outcome.count("killed", killed)
            outcome.runs += told
            if wrong:
                outcome.found.append(f"race {number}: {'; '.join(wrong[:5])}")
        harness.say(done=number + 1, of=races)


if __name__ == "__main__":
    harness.main("lost updates", work)
