"""Draws the table. Needs the dependency group ``bench``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as pyplot

__all__ = ["plot"]

#: Percent found, by kind of text, model and door.
Figures = dict[tuple[str, str, str], float]
SHADES = {"no model": "#9aa7b4", "vectors": "#4f83b5", "tokens": "#173f68"}
HATCHES = {"search": "", "recall": "//", "frame": ".."}


def plot(figures: Figures, picture: Path) -> None:
    """Draw a group of bars for each kind of text: a shade for a model, a pattern for a door."""
    kinds = list(dict.fromkeys(kind for kind, _, _ in figures))
    bars = [(model, door) for model in SHADES for door in HATCHES]
    width = 0.86 / len(bars)
    fig, axes = pyplot.subplots(figsize=(2.4 * len(kinds) + 2, 4.8))
    for at, (model, door) in enumerate(bars):
        places = [place + (at - (len(bars) - 1) / 2) * width for place in range(len(kinds))]
        values = [figures[kind, model, door] for kind in kinds]
        drawn = axes.bar(
            places,
            values,
            width,
            color=SHADES[model],
            hatch=HATCHES[door],
            edgecolor="white",
            linewidth=0.4,
            label=f"{model}, {door}",
        )
        axes.bar_label(drawn, [f"{value:.0f}" for value in values], fontsize=6, padding=1)
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set_ylabel("found among the first ten, %")
    axes.set_ylim(0, 105)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(ncols=3, fontsize="small", frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    fig.tight_layout()
    fig.savefig(picture, dpi=150)
