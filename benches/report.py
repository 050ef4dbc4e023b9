"""Writes the page of the benchmarks from results: bars, what is lost and won, and a table for each part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median, quantiles
from typing import Any

from benches import keep
from benches.harness import PARTS
from benches.parts import search, vectors

__all__ = ["LABELS", "Results", "compared", "label", "merged", "page"]

LABELS = {"ours": "chronomemory", "base": "other build", "numpy": "NumPy", "limit": "limit"}
_TITLES = {
    "write": "Writing",
    "ingest": "Files and tables",
    "open": "Opening and memory",
    "read": "Reading",
    "upkeep": "Maintenance",
    "search": "Search by words",
    "vectors": "Vectors",
    "memory": "Blocks, graphs, episodes, pages, scopes, MCP",
}
_LIMITS = {
    "write": "SHA-256 of the same log lines in one call and writing them, one core; durable: a sync for each",
    "ingest": "SHA-256 of the resulting log lines in one call, and writing them, on one core.",
    "open": "Import: Python alone, whose start is in all figures. Ours imports `ChronoStore` too, which"
    " `import chronomemory` alone leaves until it is used.",
    "upkeep": "SHA-256 of the log's bytes on all cores, nothing else.",
    "vectors": "Reading four bits of each number once, on all cores.",
    "memory": "Pages: writing, syncing and renaming a file of 4 kB. MCP: a server of the SDK alone. NumPy's"
    " product is no recall: it has neither words nor links nor time.",
}
_SCALES = {"ms": 1e3, "µs": 1e6, "s": 1.0}
#: What does not do the same: NumPy's product is no recall, and networkx keeps nothing on disk.
_NO_PEERS = {"recall": ("numpy",), "graph: import": ("networkx",)}

Row = tuple[str, ...]


def merged(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the results of several runs of one machine as one."""
    document = {**documents[0], "runs": documents}
    for name in ("results", "faults"):
        document[name] = [each for one in documents for each in one[name]]
    document["skipped"] = {name: why for one in documents for name, why in one["skipped"].items()}
    return document


class Results:
    """The results of a run, by task, size and system."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._by = {(one["task"], one["size"], one["system"]): one for one in document["results"]}

    def tasks(self, part: str) -> list[tuple[str, int]]:
        return list(
            dict.fromkeys((one["task"], one["size"]) for one in self._by.values() if one["part"] == part)
        )

    def systems(self, task: str, size: int) -> list[str]:
        return [system for name, its_size, system in self._by if (name, its_size) == (task, size)]

    def sizes(self, task: str) -> list[int]:
        return sorted({size for name, size, _ in self._by if name == task})

    def unit(self, task: str, size: int) -> str:
        return str(
            next(one["unit"] for (name, its, _), one in self._by.items() if (name, its) == (task, size))
        )

    def rounds(self, task: str, size: int, system: str) -> list[dict[str, Any]]:
        found = self._by.get((task, size, system))
        return list(found["rounds"]) if found else []

    def seconds(self, task: str, size: int, system: str, clock: str = "wall") -> list[float]:
        """Return the seconds of one operation, for each round."""
        return [one[clock] / one["count"] for one in self.rounds(task, size, system)]

    def ratio(self, task: str, size: int, other: str, ours: str = "ours") -> float | None:
        """Return how many times as long the other takes: the median of the ratios of each round."""
        mine, its = self.seconds(task, size, ours), self.seconds(task, size, other)
        return median(b / a for a, b in zip(mine, its, strict=False)) if mine and its else None

    def note(self, task: str, size: int, system: str, name: str) -> float | None:
        found = [one["notes"][name] for one in self.rounds(task, size, system) if name in one["notes"]]
        return float(median(found)) if found else None

    def peers(self, task: str, size: int) -> list[str]:
        apart = ("ours", "base", "limit", *_NO_PEERS.get(task, ()))
        return [one for one in self.systems(task, size) if one.partition("/")[0] not in apart]

    def fastest(self, task: str, size: int) -> str | None:
        times = {one: median(self.seconds(task, size, one)) for one in self.peers(task, size)}
        return min(times, key=lambda one: times[one]) if times else None


def label(system: str) -> str:
    family, _, setting = system.partition("/")
    return LABELS.get(family, family) + (f", {setting}" if setting else "")


def shown(seconds: float, unit: str) -> str:
    """Spell a time of one operation in the unit of its task."""
    if unit == "/s":
        return f"{_number(1 / seconds)}/s"
    return f"{_number(seconds * _SCALES[unit])} {unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2g}"


def _spread(times: list[float], unit: str) -> str:
    if len(times) < 3:
        return shown(median(times), unit)
    low, _, high = sorted(quantiles(times, n=4, method="inclusive"), reverse=unit == "/s")
    ends = [shown(one, unit).removesuffix(unit).strip() for one in (low, high)]
    return f"{shown(median(times), unit)} ({ends[0]}–{ends[1]})"


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f} ×" if ratio >= 0.1 else f"{ratio:.2g} ×"


def _table(head: Row, rows: Iterable[Row]) -> list[str]:
    return [_line(head), _line(("---",) * len(head)), *map(_line, rows), ""]


def _line(cells: Row) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _size(size: int) -> str:
    return f"{size:,}" if size else ""


# The bars.

#: A value of a task at a size, as text and as the number that is compared with the bar.
Value = tuple[str, float] | None
#: What is measured, the bar, its task, the size it is about (0 for any), and the value.
Bar = tuple[str, str, str, int, Callable[["Results", str, int], Value]]
M = 1_000_000
GROWING = "upsert_many while it grows"


def _in(unit: str) -> Callable[[Results, str, int], Value]:
    """Return the time of one operation in a unit; for "/s" its rate."""

    def value(results: Results, task: str, size: int) -> Value:
        times = results.seconds(task, size, "ours")
        if not times:
            return None
        middle = median(times)
        return shown(middle, unit), 1 / middle if unit == "/s" else middle * _SCALES[unit]

    return value


def _to(other: str) -> Callable[[Results, str, int], Value]:
    """Return the speed relative to another system."""

    def value(results: Results, task: str, size: int) -> Value:
        ratio = results.ratio(task, size, other)
        return None if ratio is None else (f"{ratio:.2f} ×", ratio)

    return value


def _noted(name: str) -> Callable[[Results, str, int], Value]:
    def value(results: Results, task: str, size: int) -> Value:
        noted = results.note(task, size, "ours", name)
        return None if noted is None else (f"{noted:g}", noted)

    return value


def _to_verify(results: Results, task: str, size: int) -> Value:
    ours, verify = results.seconds(task, size, "ours"), results.seconds("verify", size, "ours")
    if not ours or not verify:
        return None
    return f"{median(ours) / median(verify):.2f} ×", median(ours) / median(verify)


def _later_batches(results: Results, task: str, size: int) -> Value:
    """Return the rate of batches after the first seal can be (65,536 events), relative to those before."""
    rates = [one["notes"]["rates"] for one in results.rounds(task, size, "ours")]
    ratios = [len(its[6:]) / sum(1 / one for one in its[6:]) / median(its[:6]) for its in rates if its[6:]]
    return (f"{median(ratios):.2f} ×", median(ratios)) if ratios else None


def _bars(sha: bool) -> list[Bar]:
    opening, query, exact = "open and first get", "query of 1 % by kind", "exact top 10"
    start = "import in a new process"
    return [
        ("open and first `get`, closed", "≤ 50 ms", opening, M, _in("ms")),
        ("the same, compacted", "≤ 50 ms", f"{opening}, compacted", M, _in("ms")),
        ("the same, killed while writing", "≤ 250 ms", f"{opening}, killed", M, _in("ms")),
        ("resident memory after it", "≤ 60 MB", opening, M, _noted("resident MB")),
        ("Pss of four readers, relative to one", "≤ 1.5 ×", "memory of readers", M, _noted("ratio")),
        ("first search", "≤ 30 ms", "open and first search", M, _in("ms")),
        ("first `nearest`", "≤ 30 ms", "open and first nearest", M, _in("ms")),
        ('open, `verify="full"`, relative to `verify()`', "≤ 1.2 ×", 'open, verify="full"', M, _to_verify),
        ("`upsert_many`, relative to the limit", "≥ 0.8 ×", "upsert_many of 10,000", 0, _to("limit")),
        ("NDJSON, relative to the limit", "≥ 0.75 ×", "NDJSON file", 0, _to("limit")),
        ("Arrow, relative to the limit", "≥ 0.75 ×", "Arrow table", 0, _to("limit")),
        (
            f"single upserts, `normal`, to rocksdict ({'with' if sha else 'without'} SHA instructions)",
            "≥ 1.1 ×" if sha else "≥ 0.8 ×",
            "upsert, normal, 1 thread",
            0,
            _to("rocksdict"),
        ),
        ("durable, 1 thread, to rocksdict", "≥ 0.9 ×", "upsert, durable, 1 thread", 0, _to("rocksdict")),
        ("durable, 16 threads, to rocksdict", "≥ 2 ×", "upsert, durable, 16 threads", 0, _to("rocksdict")),
        (
            "batches after 60,000 events",
            "≥ 0.9 ×",
            GROWING,
            M,
            _later_batches,
        ),
        ("`get`, hot 10,000", "≥ 400,000/s", "get, 10,000 hot", 0, _in("/s")),
        ("`get`, random", "≥ 300,000/s", "get, random", M, _in("/s")),
        ("query of 10,000, scattered", "≤ 15 ms", query, M, _in("ms")),
        ("the same, fields decoded", "≤ 40 ms", f"{query}, fields decoded", M, _in("ms")),
        ("export", "≤ 3 s", "export", M, _in("s")),
        ("its peak memory", "≤ 200 MB", "export", M, _noted("peak MB")),
        ("compact", "≤ 6.4 s", "compact", M, _in("s")),
        ("exact top 10 of 10,000, to NumPy", "≥ 2 ×", exact, 10_000, _to("numpy")),
        ("exact top 10 of 100,000, to NumPy", "≥ 5 ×", exact, 100_000, _to("numpy")),
        ("exact top 10 of 1,000,000, to NumPy", "≥ 6 ×", exact, M, _to("numpy")),
        ("the same, batch of 64, to NumPy", "≥ 3 ×", f"{exact}, batch of 64", M, _to("numpy")),
        ("two terms with context, to tantivy", "≥ 1 ×", "search, two terms", 100_000, _to("tantivy")),
        (
            "segment files without `words`, to the log",
            "≤ 0.25 ×",
            "size on disk",
            M,
            _noted("segments to log"),
        ),
        ("`import chronomemory`", "≤ 60 ms", start, 0, _in("ms")),
        ("`chronomemory --version`", "≤ 150 ms", f"{start}, --version", 0, _in("ms")),
    ]


def bars(results: Results) -> list[Row]:
    """Return a row for each bar: measured at the size it is about, or at the largest that was measured."""
    rows = []
    for what, bar, task, at, value in _bars(results.document["machine"]["sha_instructions"]):
        sizes = results.sizes(task)
        size = at if at in sizes else max(sizes, default=0)
        found = value(results, task, size) if sizes else None
        if found is None:
            rows.append((what, bar, "not measured", "–"))
            continue
        least, bound = bar[0] == "≥", float(bar[1:].split("/")[0].strip(" ×msMB").replace(",", ""))
        met = "yes" if (found[1] >= bound if least else found[1] <= bound) else "**no**"
        if at and size < at:
            met = f"– (the bar is about {at:,})"
        rows.append((what, bar, found[0] + (f" at {size:,}" if size else ""), met))
    return [*rows, ("3,000,000 records in 256 MB", "every call works", "not measured here", "–")]


# The page.


def compared(results: Results) -> list[tuple[float, Row]]:
    """Return the ratio to the fastest peer for each task, at its largest size."""
    rows = []
    for part in PARTS:
        for task, size in results.tasks(part):
            peer = results.fastest(task, size)
            unit = results.unit(task, size)
            if (
                size != max(results.sizes(task))
                or peer is None
                or not unit
                or "ours" not in results.systems(task, size)
            ):
                continue
            ratio = results.ratio(task, size, peer)
            assert ratio is not None
            mine, its = (median(results.seconds(task, size, one)) for one in ("ours", peer))
            rows.append(
                (
                    ratio,
                    (
                        task,
                        _size(size),
                        shown(mine, unit),
                        f"{label(peer)} {shown(its, unit)}",
                        _times(ratio),
                    ),
                )
            )
    return sorted(rows, key=lambda row: row[0])


def _cpu(results: Results, task: str, size: int, system: str) -> str:
    """Spell the CPU time of one operation."""
    unit = results.unit(task, size)
    return shown(median(results.seconds(task, size, system, "cpu")), "µs" if unit == "/s" else unit)


def _summary(results: Results, part: str) -> list[str]:
    rows = []
    for task, size in results.tasks(part):
        unit, peer = results.unit(task, size), results.fastest(task, size)
        if not unit:
            continue
        for ours in [one for one in results.systems(task, size) if one.partition("/")[0] == "ours"]:
            name = task + (f" ({ours.partition('/')[2]})" if "/" in ours else "")
            wall = _spread(results.seconds(task, size, ours), unit)
            to_limit = _times(results.ratio(task, size, "limit", ours))
            best, to_peer, theirs = "–", "–", "–"
            if peer is not None:
                best = f"{label(peer)} {shown(median(results.seconds(task, size, peer)), unit)}"
                to_peer, theirs = (
                    _times(results.ratio(task, size, peer, ours)),
                    _cpu(results, task, size, peer),
                )
            cpu = _cpu(results, task, size, ours)
            rows.append((name, _size(size), wall, cpu, best, theirs, to_peer, to_limit))
    head = ("task", "size", "ours (quartiles)", "CPU", "fastest peer", "its CPU", "to it", "to the limit")
    return _table(head, rows) if rows else []


def _notes(results: Results, part: str) -> list[str]:
    rows = []
    for task, size in results.tasks(part):
        for system in results.systems(task, size):
            rounds = results.rounds(task, size, system)
            names = [name for name, value in rounds[0]["notes"].items() if not isinstance(value, list)]
            noted = [f"{name} {results.note(task, size, system, name):g}" for name in names]
            if noted:
                rows.append((task, _size(size), label(system), "; ".join(noted)))
    return _table(("task", "size", "system", "measured besides"), rows) if rows else []


def _details(results: Results, part: str) -> list[str]:
    # What a system left undone until it is closed shows there.
    rows, closes = [], part in ("write", "ingest")
    for task, size in results.tasks(part):
        unit = results.unit(task, size)
        for system in results.systems(task, size) if unit else []:
            wall, used = results.seconds(task, size, system), _cpu(results, task, size, system)
            first = next((one for one in results.systems(task, size) if one.startswith("ours")), "")
            ratio = _times(results.ratio(task, size, system, first))
            closing = [one["finish"][0] for one in results.rounds(task, size, system) if "finish" in one]
            close = (f"{median(closing) * 1e3:.1f} ms" if closing else "–",) if closes else ()
            rows.append((task, _size(size), label(system), _spread(wall, unit), used, ratio, *close))
    head: Row = ("task", "size", "system", "median (quartiles)", "CPU", "times as long as ours")
    head = (*head, "closing, once") if closes else head
    return ["<details><summary>All systems</summary>", "", *_table(head, rows), "</details>", ""]


def _busy(machine: dict[str, Any]) -> list[str]:
    """Return a warning if other programs had the processor."""
    if machine["load"] <= machine["cores"] / 2:
        return []
    return ["- **Provisional**: other programs kept the machine busy, so no figure here is one to rely on."]


def _machine(document: dict[str, Any]) -> list[str]:
    machine = document["machine"]
    runs = [(one["machine"], one["profile"]["name"]) for one in document["runs"]]
    sha = "with" if machine["sha_instructions"] else "without"
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return [
        f"- **Machine**: {machine['cores']} cores of {machine['cpu']}, {sha} SHA instructions,"
        f" {machine['memory_gb']} GB, {machine['system']}, Python {machine['python']}.",
        *(
            f"- **Run**: {run['when']}, commit {run['commit']}, {run['build']} build, profile `{profile}`,"
            f" load {run['load']} at the start."
            for run, profile in runs
        ),
        f"- **Versions**: {versions}.",
        *_busy(machine),
        *(f"- **{name}**: {why}." for name, why in document["skipped"].items()),
        "",
    ]


METHOD = """\
- A record has twelve fields and about 420 bytes as JSON, its log line about 690. All systems get the same.
- Systems take turns, round by round. What depends on the state of a process is measured in a new process each
  round; else a process is kept, and its first answer is not counted.
- Times are medians with quartiles. *CPU* is the processor time of one operation, of all threads and children.
  *To it* and *to the limit* are medians of each round's ratio: 2.00 × is twice as fast, 0.50 × half as fast.
- Answers are compared: numbers of records and of hits, ids of exact vector search. Threads of a system that
  still work after a call has returned are not in its time.
- Peers return the bytes that they were given. chronomemory compares the checksum of a record, and decodes its
  fields when one is read. It keeps history and a hash chain, which the peers do not: most of what writing and
  disk space cost is for these."""


def page(document: dict[str, Any], images: list[str]) -> str:
    """Return the page as Markdown."""
    results = Results(document)
    ratios = compared(results)
    settings: dict[str, str] = {}
    for one in (keep.SETTINGS, search.SETTINGS, vectors.SETTINGS):
        for name, text in one.items():
            settings[name] = f"{settings[name]}; {text}" if name in settings else text
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench` (`python -m benches run`): do not edit. Compare ratios within one run,",
        "because figures of other machines differ.",
        "",
        *_machine(document),
        *([f"**Failed**: {'; '.join(document['faults'])}", ""] if document["faults"] else []),
        "## Method",
        "",
        METHOD,
        "",
        *_table(("system", "settings"), [(LABELS.get(name, name), text) for name, text in settings.items()]),
        "## Bars",
        "",
        *_table(("measurement", "bar", "measured", "met"), bars(results)),
        "## Slower than the fastest peer",
        "",
        "At the largest size of each task.",
        "",
        *_table(LOST, [row for ratio, row in ratios if ratio < 1]),
        "## Faster than the fastest peer",
        "",
        *_table(LOST, [row for ratio, row in reversed(ratios) if ratio >= 1]),
        *_images(images, "overview"),
    ]
    for part in PARTS:
        if results.tasks(part):
            lines += [f"## {_TITLES[part]}", "", *_images(images, part), *_summary(results, part)]
            lines += [f"Limit: {_LIMITS[part]}", ""] if part in _LIMITS else []
            lines += [*_notes(results, part), *_details(results, part)]
    return "\n".join(lines).rstrip() + "\n"


LOST = ("task", "size", "ours", "fastest peer", "to it")


def _images(images: list[str], part: str) -> list[str]:
    return [line for name in images if name == part for line in (f"![{part}](images/bench-{name}.svg)", "")]
