"""The commands that write, read and list records, and list embedding spaces."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer
from typer import Argument, Option

from chronomemory._core import canonical_json
from chronomemory.cli.options import MAX_SEQ, AsOf, RecordId, json_object, moment
from chronomemory.cli.output import clean, size
from chronomemory.cli.session import (
    Filters,
    NotFoundError,
    RefusedError,
    ScopedTarget,
    Session,
    Target,
    end_in_doubt,
    record_document,
)
from chronomemory.cli.tables import change_table, record_card, record_table, table
from chronomemory.deps import DepGraph
from chronomemory.event import WalEvent
from chronomemory.face.results import counted
from chronomemory.record import ChronoRecord
from chronomemory.rollback import invalidate
from chronomemory.selection import StoreView
from chronomemory.store import Records

_ROWS_SHOWN = 50
#: What the ids of blocks begin with in the log; blocks ls leaves it out.
_BLOCK = "block:"


def put(
    record_id: Annotated[str | None, Argument(metavar="ID", help="The record's id.")] = None,
    kind: Annotated[str | None, Option(help="fact, decision, risk … any word.")] = None,
    label: Annotated[str | None, Option(help="What is believed, in one line.")] = None,
    confidence: Annotated[float | None, Option(help="0 to 1.")] = None,
    status: Annotated[str | None, Option(help="active, deprecated … any word.")] = None,
    source_type: Annotated[str | None, Option(help="observed, inferred, hypothesis or synthetic.")] = None,
    evidence: Annotated[list[str] | None, Option(help="Why; may be given again.")] = None,
    boundary: Annotated[list[str] | None, Option(help="Where it holds; may be given again.")] = None,
    hypothesis: Annotated[
        bool | None, Option("--hypothesis/--no-hypothesis", help="Not established yet.")
    ] = None,
    assumptions: Annotated[
        str | None, Option(metavar="JSON", help="What the model took for granted.")
    ] = None,
    data: Annotated[str | None, Option(metavar="JSON", help="Anything else, an object.")] = None,
    depth: Annotated[int | None, Option(help="How many agents deep the writer is.")] = None,
    from_json: Annotated[
        typer.FileBinaryRead | None,
        Option(metavar="FILE", help="The whole record as one JSON object; - is stdin."),
    ] = None,
    *,
    at: ScopedTarget,
) -> None:
    """Write a record: an option replaces that field, and others stay; a deleted record starts anew."""
    given: dict[str, Any] = {
        "kind": kind,
        "label": label,
        "confidence": confidence,
        "status": status,
        "source_type": source_type,
        "evidence": evidence,
        "epistemic_boundary": boundary,
        "is_hypothesis": hypothesis,
        "model_assumptions": None if assumptions is None else json_object(assumptions, "--assumptions"),
        "data": None if data is None else json_object(data, "--data"),
    }
    given = {name: value for name, value in given.items() if value is not None and value != []}
    whole = None if from_json is None else json_object(from_json.read(), "--from-json")
    if whole is not None:
        if given or record_id is not None:
            raise typer.BadParameter("--from-json says everything: leave out the id and the fields")
        own = whole.get("recursion_depth", 0)
        if depth is None and isinstance(own, int) and not isinstance(own, bool):
            depth = own
    elif record_id is None:
        raise typer.BadParameter("a record needs an ID, or --from-json")
    with at.open(depth=depth or 0) as here:
        if record_id is None:
            event: WalEvent | None = here.door.upsert(whole or {})
        else:
            event = here.door.update(record_id, lambda known: _updated(known, record_id, given))
        if event is None:
            return
        if at.as_json:
            here.out.lines([event.to_json_line().encode("utf-8")])
        else:
            here.out.done("wrote ", (clean(event.record_id), "cyan"), f" as event {event.seq:,}")


def _updated(known: ChronoRecord | None, record_id: str, given: dict[str, Any]) -> dict[str, Any]:
    if known is None or known.status == "tombstone":
        known = ChronoRecord(id=record_id)
    return {**known.to_dict(), **given}


def get(record_id: RecordId, as_of: AsOf = None, *, at: ScopedTarget) -> None:
    """Show a record with its provenance, a deleted one too.

    The exit code is 3 if the log is damaged and a later change of the record may be missing.
    """
    with at.open() as here:
        record = _looked_at(here, as_of).get(record_id)
        if record is None:
            here.warn_unknown_scope()
            raise NotFoundError(
                f"there is no record {record_id!r}" + ("" if as_of is None else f" as of {as_of}"),
                recovery=_whereabouts(here, record_id) or "List what there is with: chronomemory query --all",
            )
        # What is known now of a rollback says nothing of how the record was before it.
        touched = here.door.rollbacks(record_id) if as_of is None and not at.as_json else ()
        here.out.report(record_document(record), record_card(record, touched))
        end_in_doubt(here.out, [record])


def _whereabouts(here: Session, record_id: str) -> str:
    """Say how to reach a block whose id was given as blocks ls prints it."""
    if here.door.get(_BLOCK + record_id) is None:
        return ""
    return f"That is a block. See it with: chronomemory blocks show {record_id}"


def delete(record_id: RecordId, *, at: ScopedTarget) -> None:
    """Tombstone a record: it leaves every answer, its history stays. An unknown id is a finding."""
    with at.open() as here:
        known = here.door.get(record_id)
        if known is None:
            here.warn_unknown_scope()
            raise NotFoundError(
                f"there is no record {record_id!r}", recovery=_whereabouts(here, record_id) or "Check the id."
            )
        if record_id.startswith(_BLOCK):
            raise RefusedError(
                f"{record_id!r} is a block",
                recovery=f"Put it away with: chronomemory blocks forget {record_id.removeprefix(_BLOCK)}",
            )
        seq = None if known.status == "tombstone" else here.door.delete(record_id).seq
        document = {"id": record_id, "deleted": seq is not None, "seq": seq}
        name = (clean(record_id), "cyan")
        if seq is None:
            here.out.answer(document, name, " was deleted before; nothing was written")
        else:
            here.out.answer(document, "deleted ", name, f" as event {seq:,}")


def query(
    rag: Annotated[bool, Option("--rag", help="Only what may reach a prompt.")] = False,
    limit: Annotated[
        int | None,
        Option(metavar="N", min=1, max=MAX_SEQ, help=f"At most so many; a table shows {_ROWS_SHOWN}."),
    ] = None,
    faces: Annotated[bool, Option("--faces", help="Records of every face.")] = False,
    explain: Annotated[bool, Option("--explain", help="Say how they were found.")] = False,
    *,
    filters: Filters,
    at: ScopedTarget,
) -> None:
    """List records, in the order they came; with --json one a line.

    The exit code is 3 if a record is shown of which a later change may be missing: the log is damaged.
    """
    if explain and at.as_json:
        raise typer.BadParameter("--explain says something to people: leave out --json")
    with at.open() as here:
        shown = limit or _ROWS_SHOWN
        records = _looked_at(here, filters.as_of).query(
            **filters.terms,
            rag_filter=rag,
            limit=limit if at.as_json else shown + 1,
            faces=faces,
            explain=explain,
        )
        here.warn_unknown_scope()
        if at.as_json:
            here.out.lines(canonical_json(record_document(record)) for record in records)
        elif not records:
            here.out.show("no such records")
        else:
            here.out.show(record_table(records[:shown], here.out.console.width))
            if len(records) > shown:
                here.out.hint(f"and more: only the first {shown:,} are shown (--limit)")
        if explain:
            here.out.hint(records.plan)
        end_in_doubt(here.out, records if at.as_json else records[:shown])


def rollback(
    record_id: RecordId,
    reason: Annotated[str, Option(help="Why it is wrong.")],
    again: Annotated[bool, Option("--again", help="Even if it is invalidated already.")] = False,
    *,
    at: ScopedTarget,
) -> None:
    """Invalidate a record, and doubt what rests on it, as one atomic batch.

    What depends on it or derives from it becomes a hypothesis at half its confidence.
    """
    with at.open() as here:

        def check(known: ChronoRecord | None) -> None:
            if known is None and not DepGraph.from_store(here.door).predecessors(record_id):
                raise NotFoundError(
                    f"there is no record {record_id!r}, and nothing rests on it", recovery="Check the id."
                )
            if known is not None and known.status == "invalidated" and not again:
                raise RefusedError(
                    f"{record_id!r} is invalidated already; again would halve every confidence once more",
                    recovery="Give --again if that is what you want.",
                )

        report = invalidate(record_id, reason, here.door, check=check)
        changes = [*filter(None, [report.direct_change]), *report.cascaded]
        if at.as_json:
            document = {**report.to_dict(), "changes": [asdict(change) for change in changes]}
            here.out.document({**document, "seq": here.store.wal_seq()})
            return
        here.out.show(change_table(changes))
        here.out.done(
            "rolled back ",
            (clean(record_id), "cyan"),
            f": {counted(len(changes), 'record')} changed in one atomic batch",
        )


def _looked_at(here: Session, as_of: str | None) -> Records | StoreView:
    return here.door if as_of is None else here.door.as_of(moment(as_of))


def spaces(at: Target) -> None:
    """List the embedding spaces: model, dimension, and how many records have an embedding."""
    with at.open() as here:
        found = here.store.vectors.spaces()
        if at.as_json:
            here.out.document({"spaces": [space.to_dict() for space in found]})
            return
        if not found:
            here.out.done("no embeddings yet")
            return
        numbers = ("dim", "records", "rows", "size")
        rows = (
            (
                f"{clean(space.name)}{' *' if space.is_default else ''}",
                clean(space.model),
                *(str(space.dim), f"{space.living:,}", f"{space.rows:,}", size(space.bytes)),
            )
            for space in found
        )
        here.out.show(table("space", "model", *numbers, right=numbers, rows=rows))
        if any(space.is_default for space in found):
            here.out.hint("* is asked when no space is named")
        here.out.hint("'chronomemory verify' checks every row")
