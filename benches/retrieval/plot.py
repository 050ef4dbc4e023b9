"""How do the figures look?

``python -m benches.retrieval.plot FIGURES PICTURE`` needs the dependency group ``bench``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean

import matplotlib.pyplot as pyplot

Figures = dict[str, dict[str, dict[str, list[float]]]]


def plot(figures: Figures, picture: Path, measure: str = "recall@10") -> None:
    """Draw one measure by category for each way of asking."""
    categories = sorted(next(iter(figures.values())))
    groups = [*categories, "mean"]
    fig, axes = pyplot.subplots(figsize=(10, 4.5))
    width = 0.8 / len(figures)
    for at, (way, by_category) in enumerate(figures.items()):
        values = [100 * fmean(by_category[category][measure]) for category in categories]
        places = [place + (at - (len(figures) - 1) / 2) * width for place in range(len(groups))]
        axes.bar(places, [*values, fmean(values)], width, label=way)
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlabel("category of the question")
    axes.set_ylabel(f"{measure}, %")
    axes.set_ylim(0, 110)
    axes.legend(ncols=3, fontsize="small", loc="upper center")
    fig.tight_layout()
    fig.savefig(picture)


if __name__ == "__main__":
    plot(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
