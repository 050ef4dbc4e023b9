"""The commands that put and consolidate episodes, and show facts with what led to them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.text import Text
from typer import Argument, Option

from chronomemory.cli.loading import command, command_group
from chronomemory.cli.options import json_object
from chronomemory.cli.output import Output, clean
from chronomemory.cli.session import NotFoundError, RefusedError, Session, Target
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
    RunReport,
    StoreError,
)
from chronomemory.episodes.facts import sources_of, statement_of
from chronomemory.episodes.runner import Runner
from chronomemory.face.moments import parse_instant, utc_now

episodes = command_group("Put episodes, look at them, and make facts of them.")
facts = command_group("Look at facts and what led to them.")

User = Annotated[str, Option("--user", metavar="NAME", help="Whose it is.")]
AnyUser = Annotated[str | None, Option("--user", metavar="NAME", help="Only this user's.")]
InSession = Annotated[str, Option("--session", metavar="NAME", help="In which session.")]
AnySession = Annotated[str | None, Option("--session", metavar="NAME", help="Only of this session.")]
OfAgent = Annotated[str, Option("--agent", metavar="NAME", help="Of which agent.")]
AnyAgent = Annotated[str | None, Option("--agent", metavar="NAME", help="Only of this agent.")]
Limit = Annotated[int, Option("--limit", "-n", min=1, help="At most so many.")]
FactId = Annotated[str, Argument(metavar="ID", help="The fact's id.")]

_RULES: TypeAdapter[list[ConsolidationRule]] = TypeAdapter(list[ConsolidationRule])


@contextmanager
def _opened(at: Target) -> Iterator[Session]:
    """Open the store; what this face refuses is an error of the arguments."""
    with at.open() as here:
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
    """Say that nothing was found, or that nothing was ever written for a user."""
    if user is not None and not here.store.scoped(user=user).known:
        return f"nothing was ever written for user={clean(user)}"
    return what


def _dumped(models: Iterable[BaseModel]) -> Iterator[dict[str, Any]]:
    return (model.model_dump(mode="json") for model in models)


@command(episodes, "put")
def put(
    content: Annotated[str, Argument(metavar="TEXT", help="What happened.")],
    user: User,
    in_session: InSession,
    agent: OfAgent,
    episode_id: Annotated[
        str | None, Option("--id", metavar="ID", help="Its id; without it, a new one.")
    ] = None,
    when: Annotated[
        str | None, Option("--at", metavar="TIME", help="When, with its time zone; without it, now.")
    ] = None,
    source_node: Annotated[str, Option("--from", metavar="NODE", help="Where it comes from.")] = "cli",
    metadata: Annotated[
        str | None, Option("--metadata", metavar="JSON", help='Such as {"subject": "ann"}.')
    ] = None,
    *,
    at: Target,
) -> None:
    """Keep an episode; one with its id in the same scope is replaced."""
    with _opened(at) as here:
        episode = Episode(
            id=episode_id or secrets.token_hex(8),
            content=content,
            timestamp=utc_now() if when is None else parse_instant("at", when),
            source_node=source_node,
            user=user,
            session=in_session,
            agent=agent,
            metadata=json_object(metadata or "{}", "--metadata"),
        )
        Episodes(here.store).put(episode, user=user, session=in_session, agent=agent)
        here.out.answer(episode.model_dump(mode="json"), "put: ", (clean(episode.id), "bold"))


@command(episodes, "recent")
def recent(
    user: User, in_session: AnySession = None, agent: AnyAgent = None, limit: Limit = 10, *, at: Target
) -> None:
    """Show the latest episodes of a user, newest first."""
    with _opened(at) as here:
        found = Episodes(here.store).recent(user, in_session, agent, limit=limit)
        rows = (
            (moment_text(one.timestamp), *map(clean, (one.id, one.session, one.agent, one.content)))
            for one in found
        )
        shown = table("when", "id", "session", "agent", "content", rows=rows)
        here.out.listing(_dumped(found), shown, _nothing(here, user, "no episodes"))


@command(episodes, "consolidate")
def consolidate(
    when: Annotated[
        str, Option("--when", metavar="SQL", help="Which episodes: a WHERE of SQL; without it, all.")
    ] = "",
    rule_id: Annotated[str, Option("--rule", metavar="ID", help="What the rule is called.")] = "cli",
    *,
    at: Target,
) -> None:
    """Show what a rule would make of the episodes; nothing is written."""
    with _opened(at) as here:
        rule = ConsolidationRule(id=rule_id, cadence={"every": 1}, when_filter=when, then_emits=[])
        sorted_ = Episodes(here.store).sort(rule, utc_now())
        rows = (
            (delta.kind, _joined(delta.source_episode_ids), _joined(getattr(delta, "replaces", [])))
            for delta in sorted_.deltas
        )
        shown = table("delta", "episodes", "replaces", rows=rows)
        here.out.listing(_dumped(sorted_.deltas), shown, "no deltas")
        if sorted_.bad:
            here.out.warn(f"update and delete need replaces: {_joined(sorted_.bad)}")


def _joined(names: Iterable[str]) -> str:
    return clean(", ".join(names))


@command(episodes, "run")
def run(
    rules: Annotated[
        Path, Argument(metavar="FILE", exists=True, dir_okay=False, help="A JSON list of rules.")
    ],
    *,
    at: Target,
) -> None:
    """Run the rules that are due, and pin the facts that they make."""
    with _opened(at) as here:
        runner = Runner(ChronoMemoryStore(here.store), ChronoFactStore(here.store), _rules(rules))
        try:
            _show_run(here.out, runner.run())
        except ConsolidationRuleError as error:
            if error.report is not None and error.report.rules:
                _show_run(here.out, error.report)
            raise


def _show_run(out: Output, report: RunReport) -> None:
    if out.as_json:
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


@command(facts, "list")
def list_facts(
    user: AnyUser = None,
    agent: AnyAgent = None,
    subject: Annotated[str | None, Option(help="What it is about.")] = None,
    predicate: Annotated[str | None, Option(help="What is said of it.")] = None,
    channel: Annotated[str | None, Option(help="Which channel it carries.")] = None,
    *,
    at: Target,
) -> None:
    """List the facts that are pinned, the oldest first."""
    with _opened(at) as here:
        asked = FactPattern(user=user, agent=agent, subject=subject, predicate=predicate, channel=channel)
        found = Facts(here.store).query(asked)
        rows = (
            map(clean, (one.id, one.user, one.agent, f"{one.confidence:.2f}", statement_of(one.payload)))
            for one in found
        )
        shown = table("id", "user", "agent", "conf", "says", rows=rows)
        here.out.listing(_dumped(found), shown, _nothing(here, user, "no facts"))


@command(facts, "show")
def show_fact(fact_id: FactId, at: Target) -> None:
    """Show a fact that is pinned."""
    with _opened(at) as here:
        fact, known = _found(here, fact_id), ("id", "user", "agent")
        shown: dict[str, str | Text] = {
            "id": clean(fact.id),
            "user": clean(fact.user),
            "agent": clean(fact.agent),
            "confidence": f"{fact.confidence:.2f}",
            "pinned": moment_text(fact.pinned_at),
            **{clean(name): clean(value) for name, value in fact.payload.items() if name not in known},
            "steps": str(len(fact.lineage)),
        }
        here.out.report(fact.model_dump(mode="json"), pairs(shown))


@command(facts, "lineage")
def lineage(fact_id: FactId, at: Target) -> None:
    """Show what led to a fact: each step, its episodes, and their places in the log."""
    with _opened(at) as here:
        steps = list(_steps(here, _found(here, fact_id)))
        fields = ("rule_id", "promotion_ts", "event", "episode", "content")
        rows = (("–" if step[name] is None else clean(step[name]) for name in fields) for step in steps)
        shown = table("rule", "promoted", "event", "episode", "said", rows=rows)
        here.out.listing(steps, shown, "no steps")


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
