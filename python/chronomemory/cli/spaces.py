"""The command that lists the embedding spaces of a store."""

from __future__ import annotations

from chronomemory.cli.options import HERE, AsJson, Project
from chronomemory.cli.output import clean, size
from chronomemory.cli.session import session
from chronomemory.cli.tables import table

__all__ = ["spaces"]


def spaces(project: Project = HERE, as_json: AsJson = False) -> None:
    """List the embedding spaces: model, dimension, and how many records have an embedding."""
    with session(project, as_json) as here:
        found = here.store.vectors.spaces()
        if as_json:
            here.out.document({"spaces": [space.to_dict() for space in found]})
            return
        if not found:
            here.out.done("no embeddings yet")
            return
        shown = table(
            "space", "model", "dim", "records", "rows", "size", right=("dim", "records", "rows", "size")
        )
        for space in found:
            name = f"{clean(space.name)} *" if space.is_default else clean(space.name)
            counts = (str(space.dim), f"{space.living:,}", f"{space.rows:,}", size(space.bytes))
            shown.add_row(name, clean(space.model), *counts)
        here.out.show(shown)
        if any(space.is_default for space in found):
            here.out.hint("* is asked when no space is named")
        here.out.hint("'chronomemory verify' checks every row")
