"""Draws the curves and bars of the benchmarks as PNG and SVG."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benches.report import Results, compared, label

__all__ = ["available", "draw"]

COLOURS = {
    "ours": "#1f5fbf",
    "base": "#7aa6e0",
    "limit": "#888888",
    "rocksdict": "#c8553d",
    "lmdb": "#588157",
    "sqlite": "#e09f3e",
    "duckdb": "#8e6c8a",
    "numpy": "#2a9d8f",
    "faiss": "#c8553d",
    "usearch": "#8e6c8a",
    "sqlite-vec": "#e09f3e",
    "lancedb": "#588157",
    "tantivy": "#c8553d",
}
_DASHES = ("-", "--", ":", "-.")


def available() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def _style() -> Any:
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    plt.rcParams.update(
        {
            "font.family": "DejaVu Sans",
            "font.size": 9,
            "axes.titlesize": 10,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#e4e4e4",
            "grid.linewidth": 0.7,
            "legend.frameon": False,
            "savefig.dpi": 150,
            "svg.hashsalt": "chronomemory",
            "svg.fonttype": "none",
        }
    )
    return plt


def _colour(system: str) -> str:
    return COLOURS.get(system.partition("/")[0], "#555555")


def _plain(value: float, _: object = None) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _curve(
    axes: Any, results: Results, task: str, title: str, across: str, *more: tuple[str, str, str]
) -> None:
    """Draw the time of each system over the sizes; ``more`` are other tasks of ours: task, label, dash."""
    unit = "ms" if results.unit(task, results.sizes(task)[-1]) == "ms" else "µs"
    scale = {"ms": 1e3, "µs": 1e6}[unit]

    def line(name: str, system: str, text: str, dash: str) -> None:
        sizes = [size for size in results.sizes(name) if results.seconds(name, size, system)]
        values = [median(results.seconds(name, size, system)) * scale for size in sizes]
        is_ours = system.startswith("ours")
        axes.plot(
            sizes,
            values,
            dash,
            marker="o",
            markersize=4,
            color=_colour(system),
            linewidth=2.2 if is_ours else 1.4,
            label=text,
            zorder=3 if is_ours else 2,
        )

    systems = results.systems(task, results.sizes(task)[0])
    for system in systems:
        settings = [one for one in systems if one.partition("/")[0] == system.partition("/")[0]]
        dash = "--" if system == "limit" else _DASHES[settings.index(system) % len(_DASHES)]
        line(task, system, label(system), dash)
    for name, text, dash in more:
        if results.sizes(name):
            line(name, "ours", text, dash)
    axes.set(xscale="log", yscale="log", xlabel=across, ylabel=f"{unit} (log)", title=title)
    axes.minorticks_off()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(_plain)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def _bars(axes: Any, results: Results, tasks: list[str], title: str) -> None:
    """Draw the rate of each system, a group of bars for each task; longer is faster."""
    height, place = 0.8, 0.0
    ticks, names = [], []
    for task in reversed(tasks):
        size = results.sizes(task)[-1]
        systems = results.systems(task, size)[::-1]
        rates = [1 / median(results.seconds(task, size, one)) for one in systems]
        for system, rate in zip(systems, rates, strict=True):
            axes.barh(
                place, rate / max(rates), height, color=_colour(system), alpha=0.5 if system == "limit" else 1
            )
            axes.text(rate / max(rates) + 0.01, place, f"{rate:,.0f}/s", va="center", fontsize=7.5)
            ticks.append(place)
            names.append(label(system))
            place += 1
        axes.text(0, place - 0.15, task, fontsize=9, weight="bold", va="center")
        place += 1.3
    axes.set_yticks(ticks, names, fontsize=8)
    axes.set_xticks([])
    axes.set(xlim=(0, 1.15), ylim=(-0.8, place - 0.6), title=title)
    axes.grid(False)
    axes.spines["bottom"].set_visible(False)


def _overview(results: Results, plt: Any) -> Any:
    rows = compared(results)
    figure, axes = plt.subplots(figsize=(8, 0.8 + 0.24 * len(rows)))
    for place, (ratio, row) in enumerate(rows):
        axes.barh(
            place,
            ratio - 1,
            left=1,
            color=COLOURS["ours"] if ratio >= 1 else COLOURS["rocksdict"],
            height=0.7,
        )
        text = f"{row[-1]} {row[3].split(' ')[0]}"
        axes.text(
            ratio * (1.06 if ratio >= 1 else 0.94),
            place,
            text,
            va="center",
            ha="left" if ratio >= 1 else "right",
            fontsize=7.5,
        )
    axes.set_yticks(
        range(len(rows)), [f"{row[0]}{f', {row[1]}' if row[1] else ''}" for _, row in rows], fontsize=8
    )
    axes.set_xscale("log")
    low, high = min(one for one, _ in rows), max(one for one, _ in rows)
    axes.set_xlim(min(low, 1) / 20, max(high, 1) * 20)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} ×")
    axes.axvline(1, color="#444444", linewidth=1)
    axes.set(title="Speed relative to the fastest peer (log)")
    axes.grid(axis="y", visible=False)
    return figure


def _growth(results: Results, axes: Any) -> None:
    task = "upsert_many while it grows"
    size = results.sizes(task)[-1]
    for system in results.systems(task, size):
        rounds = [one["notes"]["rates"] for one in results.rounds(task, size, system)]
        rates = [median(values) for values in zip(*rounds, strict=True)]
        width = max(1, len(rates) // 40)
        smooth = [median(rates[at : at + width]) for at in range(0, len(rates), width)]
        across = [size * (at + 1) / len(smooth) for at in range(len(smooth))]
        is_ours = system.startswith("ours")
        axes.plot(
            across, smooth, color=_colour(system), linewidth=2.2 if is_ours else 1.4, label=label(system)
        )
    axes.set(
        title="Batches of 10,000 while the store grows",
        xlabel="records written",
        ylabel="records/s",
        ylim=(0, None),
    )
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_plain)
    axes.legend(fontsize=8)


def _write(results: Results, plt: Any) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 6), width_ratios=(1, 1))
    singles = [task for task, _ in results.tasks("write") if task.startswith("upsert,")]
    _bars(left, results, [*singles, "upsert_many of 10,000"], "Records written a second")
    _growth(results, right)
    return figure


def _open(results: Results, plt: Any) -> Any:
    figure, axes = plt.subplots(figsize=(8, 4))
    name = "open and first get"
    more = (
        (f"{name}, compacted", "chronomemory, compacted", "--"),
        (f"{name}, killed", "chronomemory, killed", ":"),
    )
    _curve(axes, results, name, "Open a store and get one record, in a new process", "records", *more)
    return figure


def _read(results: Results, plt: Any) -> Any:
    figure, axes = plt.subplots(figsize=(7, 4.4))
    _bars(
        axes, results, [task for task, _ in results.tasks("read") if task.startswith("get")], "Gets a second"
    )
    return figure


def _pair(
    part: str, first: tuple[str, str], second: tuple[str, str], across: str
) -> Callable[[Results, Any], Any]:
    def pair(results: Results, plt: Any) -> Any:
        figure, both = plt.subplots(1, 2, figsize=(12, 4))
        for axes, (task, title) in zip(both, (first, second), strict=True):
            _curve(axes, results, task, title, across)
        return figure

    return pair


_DRAWINGS: dict[str, tuple[str, Callable[[Results, Any], Any]]] = {
    "overview": ("", _overview),
    "write": ("upsert_many while it grows", _write),
    "open": ("open and first get", _open),
    "read": ("get, random", _read),
    "search": (
        "search, two terms",
        _pair(
            "search",
            ("search, one term", "Search: one term"),
            ("search, two terms", "Search: two terms"),
            "documents",
        ),
    ),
    "vectors": (
        "exact top 10",
        _pair(
            "vectors",
            ("exact top 10", "Exact top 10, one query"),
            ("exact top 10, batch of 64", "Exact top 10, batch of 64"),
            "vectors of 384 numbers",
        ),
    ),
}


def draw(document: dict[str, Any], folder: Path) -> list[str]:
    """Draw what the results have, and return the names of the plots."""
    results, plt, names = Results(document), _style(), []
    folder.mkdir(parents=True, exist_ok=True)
    for name, (task, drawing) in _DRAWINGS.items():
        if not (results.sizes(task) if task else compared(results)):
            continue
        figure = drawing(results, plt)
        figure.tight_layout()
        figure.savefig(folder / f"bench-{name}.png")
        figure.savefig(folder / f"bench-{name}.svg", metadata={"Date": None})
        plt.close(figure)
        names.append(name)
    return names
