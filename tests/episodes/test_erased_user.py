"""A user is gone from episodes and facts once she is erased, and everybody else is as before."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from chronomemory import ChronoStore
from chronomemory.episodes import Episodes, Fact, FactPattern, Facts
from conversing import START, episode, put

LINEAGE = [{"rule_id": "by hand", "source_episode_ids": ["e0"], "promotion_ts": START.isoformat()}]


def fact(user: str, minute: int, drink: str) -> Fact:
    return Fact(
        id=f"{user}-drinks",
        user=user,
        agent="helper",
        payload={"drink": drink},
        lineage=LINEAGE,
        confidence=0.9,
        pinned_at=START + timedelta(minutes=minute),
    )


def test_nothing_of_an_erased_user_is_left(
    store: ChronoStore, episodes: Episodes, facts: Facts, tmp_path: Path
) -> None:
    for user, secret in (("ann", "oolong"), ("bob", "espresso")):
        turns = [episode(f"{user}{n}", f"{secret} number {n}", user=user, session=f"s{n}") for n in range(3)]
        put(episodes, *turns)
        facts.pin(fact(user, 1, f"{secret} first"))
        facts.pin(fact(user, 2, f"{secret} at last"))
    store.compact()
    before = episodes.recent(user="bob", limit=10)
    store.erase(scope={"user": "ann"}, reason="asked for")
    assert episodes.recent(user="ann", limit=10) == []
    assert facts.query(FactPattern(user="ann")) == []
    assert episodes.recent(user="bob", limit=10) == before
    assert [one.payload for one in facts.query(FactPattern(user="bob"))] == [{"drink": "espresso at last"}]
    past = store.as_of(store.verify().events).query(status="")
    assert not [record for record in past if "oolong" in record.label or "oolong" in str(record.data)]
    assert store.verify().valid
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not any(b"oolong" in path.read_bytes() for path in files)


def test_facts_that_rest_on_an_erased_episode_go_if_asked(
    store: ChronoStore, episodes: Episodes, facts: Facts
) -> None:
    put(episodes, episode("e0", "oolong at four", user="ann"), episode("e1", "espresso", user="ann"))
    facts.pin(fact("ann", 1, "oolong"))
    other = [{**LINEAGE[0], "source_episode_ids": ["e1"]}]
    facts.pin(fact("bob", 1, "espresso").model_copy(update={"lineage": other, "user": "ann"}))
    names = ("fact:ann-drinks", "fact:bob-drinks")
    planned = store.erase(ids=["episode:e0"], reason="asked for", dry_run=True)
    assert (planned.belonging, planned.mentions) == ((), names[:1])
    planned = store.erase(ids=["episode:e0"], reason="asked for", derived=True, dry_run=True)
    assert (planned.belonging, planned.mentions) == (names[:1], ())
    store.erase(ids=["episode:e0"], reason="asked for")
    kept = facts.get("ann-drinks")
    assert kept is not None
    assert kept.lineage == [{**step, "source_episode_ids": []} for step in LINEAGE]
    store.erase(ids=["episode:e1"], reason="asked for", derived=True)
    assert (facts.get("bob-drinks"), store.history(names[1])) == (None, [])
    assert facts.get("ann-drinks") == kept
    assert store.verify().valid
