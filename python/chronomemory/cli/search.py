"""The search command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from chronomemory._core import canonical_json
from chronomemory.cli.loading import loaded
from chronomemory.cli.options import moment, time_of
from chronomemory.cli.output import clean
from chronomemory.cli.session import Embeds, Filters, ScopedTarget, end_in_doubt, record_document
from chronomemory.cli.tables import GAP, fit_ids, in_doubt_text, table
from chronomemory.search import Hit
from chronomemory.store import Records

_BAR = 24
_LONG_ID, _SHORT_BAR = 30, 8
_PARTS = (
    ("alone", "alone", "green"),
    ("linked", "linked", "cyan"),
    ("second", "second", "cyan"),
    ("grouped", "group", "blue"),
    ("timed", "time", "magenta"),
    ("spoken", "speaker", "yellow"),
)
_ALIKE = (
    ("cosine", "of the vectors"),
    ("tokens", "of the question's tokens"),
    ("text_share", ""),
    ("vector_share", ""),
    ("token_share", ""),
)
_EIGHTHS = " ▏▎▍▌▋▊▉"


def search(
    words: Annotated[str, Argument(metavar="TEXT", help="What to look for.")],
    min_score: Annotated[float | None, Option(help="Leave out what is scored below.")] = None,
    limit: Annotated[int, Option(metavar="N", min=1, max=10_000, help="At most so many.")] = 10,
    context: Annotated[
        bool, Option("--context/--no-context", help="Let what surrounds a hit lift it.")
    ] = True,
    now: Annotated[str | None, Option(metavar="TIME", help='What "yesterday" is counted from.')] = None,
    explain: Annotated[bool, Option("--explain", help="Show what each score is made of.")] = False,
    *,
    filters: Filters,
    embeds: Embeds,
    at: ScopedTarget,
) -> None:
    """Find records by their words, best first; with --json one a line.

    The exit code is 3 if a record is found of which a later change may be missing: the log is damaged.
    """
    with at.open() as here:
        hits = here.door.search(
            words,
            **_reading(here.door, words, embeds),
            **filters.terms,
            min_score=min_score,
            limit=limit,
            context=context,
            now=time_of(now, "--now"),
            as_of=None if filters.as_of is None else moment(filters.as_of),
            explain=explain or not at.as_json,
        )
        here.warn_unknown_scope()
        if at.as_json:
            found = (
                {"record": record_document(hit.record), "score": hit.score, "why": hit.why} for hit in hits
            )
            here.out.lines(
                canonical_json({name: hit[name] for name in hit if explain or name != "why"}) for hit in found
            )
        elif not hits:
            here.out.show("nothing found")
        else:
            here.out.show(_hit_table(hits, here.out.console.width))
            if explain:
                here.out.show(*(_why_table(hit) for hit in hits))
        end_in_doubt(here.out, [hit.record for hit in hits])


def _reading(door: Records, words: str, embeds: Embeds) -> dict[str, Any]:
    """Return the arguments of a search by an embedder: that of the blocks, or of other records."""
    chosen = embeds.chosen()
    if chosen is None:
        return {}
    found: dict[str, Any] = loaded("chronomemory.blocks.retrieval").reading_of(door, chosen, words)
    return found or {"embedder": chosen}


def _bar(parts: Sequence[tuple[float, str]], full: float, cells: int = _BAR) -> Text:
    """Draw numbers as one bar, each in its colour; the longest bar of all is ``full``."""
    bar = Text()
    eighths = done = 0
    reached = 0.0
    for value, style in parts:
        reached += max(value, 0.0)
        eighths = round(8 * cells * reached / full) if full > 0 else 0
        whole, left = divmod(eighths - done, 8)
        is_last = (value, style) == parts[-1]
        bar.append("█" * whole + (_EIGHTHS[left].strip() if is_last else ""), style=style)
        done += 8 * whole
    return bar


def _hit_table(hits: Sequence[Hit], width: int) -> Table:
    made = table("score", "", "id", "label", right=("score",))
    full, ids = max(hit.score for hit in hits), [hit.id for hit in hits]
    cells = _BAR if max(map(len, ids)) <= _LONG_ID else _SHORT_BAR
    made.columns[1].width = cells
    room = fit_ids(made.columns[2], ids, width - cells - max(len(f"{full:.3f}"), 5) - 3 * GAP)
    for hit in hits:
        why = hit.why or {}
        text = hit.record.label or hit.record.data.get("content", "")  # a block has no label
        shown = " ".join(text.split()) if isinstance(text, str) else ""
        label = Text.assemble(in_doubt_text(hit.record), clean(shown), no_wrap=True)
        label.truncate(room, overflow="ellipsis")
        bar = _bar([(why.get(name, 0.0), style) for name, _, style in _PARTS], full, cells)
        made.add_row(f"{hit.score:.3f}", bar, Text(clean(hit.id), style="cyan"), label)
    return made


def _why_table(hit: Hit) -> Table:
    why = hit.why or {}
    made = Table.grid(padding=(0, 2))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(justify="right")
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    made.add_row(Text(clean(hit.id), style="bold cyan"), f"{hit.score:.3f}", "", "")
    best = max([*why["words"].values(), hit.score])
    for word, score in sorted(why["words"].items(), key=lambda pair: -pair[1]):
        made.add_row(f"  {clean(word)}", f"{score:.3f}", _bar([(score, "green")], best), "a word of the text")
    for name, note in _ALIKE:
        if why[name] is not None:
            shown = f"{why[name]:.3f}"
            made.add_row(f"  {name.replace('_', ' ')}", shown, _bar([(why[name], "yellow")], 1.0), note)
    for name, title, style in _PARTS:
        by = why.get(f"{name}_by")
        note = "" if by is None else f"by {clean(by)}"
        made.add_row(f"  {title}", f"{why[name]:.3f}", _bar([(why[name], style)], best), note)
    return made
