"""The commands that put and consolidate episodes, and show facts with what led to them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.text import Text

from chronomemory._core import canonical_json
from chronomemory.cli.loading import Command, CommandGroup
from chronomemory.cli.options import HERE, AsJson, Project, text
from chronomemory.cli.output import Output, clean
from chronomemory.cli.session import NotFoundError, RefusedError, Session, session
from chronomemory.cli.tables import moment_text, pairs, table
from chronomemory.episodes import (
    ChronoFactStore,
    ChronoMemoryStore,
    ConsolidationRule,
    ConsolidationRuleError,
    Episode,
    Episodes,
    Fact,
    FactPattern,
    Facts,
    MemoryDelta,
    RunReport,
    StoreError,
)
from chronomemory.episodes.runner import Runner
from chronomemory.episodes.storage.facts import sources_of
from chronomemory.face.moments import parse_instant, utc_now

__all__ = ["episodes", "facts"]

episodes = typer.Typer(
    cls=CommandGroup,
    help="Put episodes, look at them, and make facts of them.",
    no_args_is_help=True,
    add_completion=False,
)
facts = typer.Typer(
    cls=CommandGroup, help="Look at facts and what led to them.", no_args_is_help=True, add_completion=False
)

User = Annotated[str, typer.Option("--user", metavar="NAME", callback=text, help="Whose it is.")]
AnyUser = Annotated[
    str | None, typer.Option("--user", metavar="NAME", callback=text, help="Only this user's.")
]
InSession = Annotated[str, typer.Option("--session", metavar="NAME", callback=text, help="In which session.")]
AnySession = Annotated[
    str | None, typer.Option("--session", metavar="NAME", callback=text, help="Only of this session.")
]
OfAgent = Annotated[str, typer.Option("--agent", metavar="NAME", callback=text, help="Of which agent.")]
AnyAgent = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", callback=text, help="Only of this agent.")
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")]
FactId = Annotated[str, typer.Argument(metavar="ID", callback=text, help="The fact's id.")]

_RULES: TypeAdapter[list[ConsolidationRule]] = TypeAdapter(list[ConsolidationRule])


@contextmanager
def _reached(project: Path, as_json: bool) -> Iterator[Session]:
    """Lend a project; what this face refuses is an error of the arguments."""
    with session(project, as_json) as here:
        try:
            yield here
        except StoreError as error:
            raise RefusedError(error.message, recovery=error.recovery) from None
        except ValidationError as error:
            raise RefusedError(_first_of(error)) from None


def _first_of(error: ValidationError) -> str:
    """Return the first thing that is wrong, and where."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


def _nothing(here: Session, user: str | None, what: str) -> str:
    """Say that there is nothing; if there never was anything of somebody, the name may be misspelled."""
    if user is not None and not here.store.scoped(user=user).known:
        return f"nothing was ever written for user={clean(user)}"
    return what


def _lines(out: Output, models: Iterable[BaseModel]) -> None:
    out.lines(canonical_json(model.model_dump(mode="json")) for model in models)


@episodes.command("put", cls=Command)
def put(
    content: Annotated[str, typer.Argument(metavar="TEXT", callback=text, help="What happened.")],
    user: User,
    in_session: InSession,
    agent: OfAgent,
    episode_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", callback=text, help="Its id; without it, a new one.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="When, with its time zone; without it, now.")
    ] = None,
    source_node: Annotated[str, typer.Option("--from", metavar="NODE", help="Where it comes from.")] = "cli",
    metadata: Annotated[
        str | None, typer.Option("--metadata", metavar="JSON", help='Such as {"subject": "ann"}.')
    ] = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Keep an episode; one with its id in the same scope is replaced."""
    with _reached(project, as_json) as here:
        episode = Episode(
            id=episode_id or secrets.token_hex(8),
            content=content,
            timestamp=utc_now() if at is None else parse_instant("at", at),
            source_node=source_node,
            user=user,
            session=in_session,
            agent=agent,
            metadata=_object(metadata),
        )
        Episodes(here.store).put(episode, user=user, session=in_session, agent=agent)
        if as_json:
            here.out.document(episode.model_dump(mode="json"))
        else:
            here.out.done("put: ", (clean(episode.id), "bold"))


def _object(given: str | None) -> dict[str, Any]:
    try:
        value = json.loads(given or "{}")
    except ValueError as error:
        raise RefusedError(f"--metadata is no JSON: {error}") from None
    except RecursionError:
        raise RefusedError("--metadata is nested too deeply") from None
    if not isinstance(value, dict):
        raise RefusedError("--metadata must be an object")
    return value


@episodes.command("recent", cls=Command)
def recent(
    user: User,
    in_session: AnySession = None,
    agent: AnyAgent = None,
    limit: Limit = 10,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Show the latest episodes of a user, newest first."""
    with _reached(project, as_json) as here:
        found = Episodes(here.store).recent(user, in_session, agent, limit=limit)
        if as_json:
            _lines(here.out, found)
            return
        rows = table("when", "id", "session", "agent", "content")
        for one in found:
            said = (one.id, one.session, one.agent, one.content)
            rows.add_row(moment_text(one.timestamp), *map(clean, said))
        here.out.show(rows if found else _nothing(here, user, "no episodes"))


@episodes.command("consolidate", cls=Command)
def consolidate(
    when: Annotated[
        str, typer.Option("--when", metavar="SQL", help="Which episodes: a WHERE of SQL; without it, all.")
    ] = "",
    rule_id: Annotated[str, typer.Option("--rule", metavar="ID", help="What the rule is called.")] = "cli",
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Show what a rule would make of the episodes; nothing is written."""
    with _reached(project, as_json) as here:
        rule = ConsolidationRule(id=rule_id, cadence={"every": 1}, when_filter=when, then_emits=[])
        told = Episodes(here.store).sort(rule, utc_now())
        if as_json:
            _lines(here.out, told.deltas)
        else:
            rows = table("delta", "episodes", "replaces")
            for delta in told.deltas:
                rows.add_row(delta.kind, _joined(delta.source_episode_ids), _joined(_replaced(delta)))
            here.out.show(rows if told.deltas else "no deltas")
        if told.bad:
            here.out.warn(f"update and delete need replaces: {_joined(told.bad)}")


def _replaced(delta: MemoryDelta) -> list[str]:
    return getattr(delta, "replaces", [])


def _joined(names: Iterable[str]) -> str:
    return clean(", ".join(names))


@episodes.command("run", cls=Command)
def run(
    rules: Annotated[
        Path,
        typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A JSON list of rules."),
    ],
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Run the rules that are due, and pin the facts that they make."""
    with _reached(project, as_json) as here:
        given = _rules(rules)
        runner = Runner(ChronoMemoryStore(here.store), ChronoFactStore(here.store), given)
        try:
            _told(here.out, runner.run(), as_json)
        except ConsolidationRuleError as error:
            if error.report is not None and error.report.rules:
                _told(here.out, error.report, as_json)
            raise


def _told(out: Output, report: RunReport, as_json: bool) -> None:
    if as_json:
        out.document(report.to_dict())
        return
    for one in report.rules:
        out.done(clean(one.summary))


def _rules(file: Path) -> list[ConsolidationRule]:
    try:
        return _RULES.validate_json(file.read_bytes())
    except ValidationError as error:
        raise RefusedError(
            f"{file.name}: {_first_of(error)}",
            recovery='Give a JSON list of rules, each with "id", "cadence", "when_filter" and "then_emits".',
        ) from None


@facts.command("list", cls=Command)
def list_facts(
    user: AnyUser = None,
    agent: AnyAgent = None,
    subject: Annotated[str | None, typer.Option(callback=text, help="What it is about.")] = None,
    predicate: Annotated[str | None, typer.Option(callback=text, help="What is said of it.")] = None,
    channel: Annotated[str | None, typer.Option(callback=text, help="Which channel it carries.")] = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """List the facts that are pinned, the oldest first."""
    with _reached(project, as_json) as here:
        asked = FactPattern(user=user, agent=agent, subject=subject, predicate=predicate, channel=channel)
        found = Facts(here.store).query(asked)
        if as_json:
            _lines(here.out, found)
            return
        rows = table("id", "user", "agent", "conf", "says")
        for one in found:
            says = one.payload.get("content") or _spoken(one)
            rows.add_row(*map(clean, (one.id, one.user, one.agent, f"{one.confidence:.2f}", says)))
        here.out.show(rows if found else _nothing(here, user, "no facts"))


def _spoken(fact: Fact) -> str:
    parts = (fact.payload.get(slot) for slot in ("subject", "predicate", "object"))
    return " ".join(str(part) for part in parts if part is not None)


@facts.command("show", cls=Command)
def show_fact(fact_id: FactId, project: Project = HERE, as_json: AsJson = False) -> None:
    """Show a fact that is pinned."""
    with _reached(project, as_json) as here:
        fact = _found(here, fact_id)
        if as_json:
            here.out.document(fact.model_dump(mode="json"))
            return
        told: dict[str, str | Text] = {
            "id": clean(fact.id),
            "user": clean(fact.user),
            "agent": clean(fact.agent),
            "confidence": f"{fact.confidence:.2f}",
            "pinned": moment_text(fact.pinned_at),
            **{clean(name): clean(value) for name, value in fact.payload.items() if name not in _SHOWN},
            "steps": str(len(fact.lineage)),
        }
        here.out.show(pairs(told))


_SHOWN = ("id", "user", "agent")


@facts.command("lineage", cls=Command)
def lineage(fact_id: FactId, project: Project = HERE, as_json: AsJson = False) -> None:
    """Show what led to a fact: each step, its episodes, and their places in the log."""
    with _reached(project, as_json) as here:
        steps = list(_steps(here, _found(here, fact_id)))
        if as_json:
            here.out.lines(canonical_json(step) for step in steps)
            return
        rows = table("rule", "promoted", "event", "episode", "said")
        for step in steps:
            told = (step["rule_id"], step["promotion_ts"], step["event"], step["episode"], step["content"])
            rows.add_row(*("–" if part is None else clean(part) for part in told))
        here.out.show(rows)


def _found(here: Session, fact_id: str) -> Fact:
    plain = fact_id.removeprefix("fact:")
    fact = Facts(here.store).get(plain)
    if fact is not None:
        return fact
    if here.store.everyone().get(f"fact:{plain}") is not None:
        raise NotFoundError(
            f"the fact {plain!r} is no longer pinned",
            recovery=f"What became of it: chronomemory history --everyone fact:{plain}",
        )
    raise NotFoundError(f"there is no fact {fact_id!r}", recovery="Check the id: facts list has them.")


def _steps(here: Session, fact: Fact) -> Iterator[dict[str, Any]]:
    """Yield each episode of each step, with the event that wrote it; None for one that is not here."""
    everyone = here.store.everyone()
    for step in fact.lineage:
        for episode_id in sources_of(step):
            record = everyone.get(f"episode:{episode_id}")
            yield {
                "rule_id": step.get("rule_id"),
                "promotion_ts": step.get("promotion_ts"),
                "episode": episode_id,
                "event": None if record is None else record.created_seq,
                "content": None if record is None else record.data.get("content"),
            }
