"""Episodes are kept under their names, and found newest first."""

from __future__ import annotations

import asyncio
import fcntl
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, InvalidRecord
from chronomemory.episodes import (
    ChronoMemoryStore,
    Episode,
    Episodes,
    Facts,
    MemoryScopeError,
    MigrationNotSupported,
    MigrationPlan,
)
from conversing import START, episode, put, rule
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shares import share


def ids(found: list[Episode]) -> list[str]:
    return [one.id for one in found]


class TestRecent:
    def test_the_newest_comes_first_by_instant_and_not_by_text(self, episodes: Episodes) -> None:
        early = datetime(2026, 5, 18, 23, tzinfo=timezone(timedelta(hours=14)))  # 09:00 in UTC
        late = datetime(2026, 5, 18, 1, tzinfo=timezone(timedelta(hours=-12)))  # 13:00 in UTC
        put(episodes, *(episode(name).model_copy(update={"timestamp": when}) for name, when in (
            ("late", late), ("early", early), ("between", datetime(2026, 5, 18, 10, tzinfo=timezone.utc)),
            ("long ago", datetime(1, 1, 2, tzinfo=timezone.utc)),
        )))  # fmt: skip
        found = episodes.recent("ann", limit=9)
        assert ids(found) == ["late", "between", "early", "long ago"]
        assert found[0].timestamp == late
        assert found[0].timestamp.utcoffset() == timedelta(hours=-12)
        assert ids(episodes.recent("ann", limit=2)) == ["late", "between"]

    def test_a_level_that_is_left_out_is_any(self, episodes: Episodes) -> None:
        for minute, (session, agent) in enumerate([("s1", "a"), ("s1", "b"), ("s2", "a"), ("s2", "b")]):
            put(episodes, episode(f"{session}{agent}", session=session, agent=agent, minute=minute))
        put(episodes, episode("bob's", user="bob"))
        assert ids(episodes.recent("ann", "s1", "a", limit=9)) == ["s1a"]
        assert ids(episodes.recent("ann", "s2", limit=9)) == ["s2b", "s2a"]
        assert ids(episodes.recent("ann", agent="a", limit=9)) == ["s2a", "s1a"]
        assert ids(episodes.recent("ann", limit=9)) == ["s2b", "s2a", "s1b", "s1a"]
        assert episodes.recent("nobody", limit=9) == []

    @pytest.mark.parametrize("limit", [0, -1, True, 1.5])
    def test_a_limit_is_at_least_one(self, episodes: Episodes, limit: int) -> None:
        with pytest.raises(ValueError, match="limit"):
            episodes.recent("ann", limit=limit)

    def test_the_past_is_there(self, episodes: Episodes, store: ChronoStore) -> None:
        put(episodes, episode("a"), episode("b", minute=1))
        then = store.engine.last_seq()
        put(episodes, episode("c", minute=2), episode("a", "in other words"))
        moment = datetime.fromisoformat(store.everyone().history("episode:b")[-1].ts)
        for when in (then, moment):
            found = episodes.recent("ann", "s1", limit=9, as_of=when)
            assert [(one.id, one.content) for one in found] == [("b", "b"), ("a", "a")]
            assert ids(episodes.recent("ann", limit=1, as_of=when)) == ["b"]
            assert episodes.recent("bob", limit=9, as_of=when) == []
        assert [one.content for one in episodes.recent("ann", limit=9)] == ["c", "b", "in other words"]

    def test_a_plain_record_of_the_kind_is_no_episode(self, episodes: Episodes, store: ChronoStore) -> None:
        scope = {"user": "ann", "session": "s1", "agent": "helper"}
        store.everyone().upsert({"id": "X", "kind": "episode", "data": {"@scope": scope, "time": "2026"}})
        assert episodes.recent("ann", limit=9) == []
        assert episodes.consolidate(rule()) == []
        assert episodes.health().fragment_count == 0


class TestPut:
    def test_all_of_an_episode_comes_back(self, episodes: Episodes, store: ChronoStore) -> None:
        told = episode(
            "turn:7", "I moved\nto Oslo " * 20, subject="ann", nested={"a": [1, None, 2.5]}, none=None
        )
        put(episodes, told)
        assert episodes.recent("ann", limit=1) == [told]
        assert [hit.id for hit in store.scoped(user="ann").search("Oslo")] == ["episode:turn:7"]
        assert store.scoped(user="bob").search("Oslo") == []
        assert store.search("Oslo") == []

    def test_an_id_is_replaced_in_its_scope_and_never_stolen(self, episodes: Episodes) -> None:
        put(episodes, episode("e", "first"))
        put(episodes, episode("e", "second"))
        assert [one.content for one in episodes.recent("ann", limit=9)] == ["second"]
        for other in (episode("e", user="bob"), episode("e", session="s2"), episode("e", agent="other")):
            with pytest.raises(MemoryScopeError, match="is taken") as caught:
                put(episodes, other)
            assert "ann" not in str(caught.value)
        assert episodes.forget("e", user="ann", session="s1", agent="helper")
        with pytest.raises(MemoryScopeError):
            put(episodes, episode("e", user="bob"))
        assert episodes.recent("bob", limit=9) == []

    def test_names_agree_with_the_episode(self, episodes: Episodes) -> None:
        for level in ("user", "session", "agent"):
            names = {"user": "ann", "session": "s1", "agent": "helper", level: "other"}
            with pytest.raises(MemoryScopeError, match="the episode says"):
                episodes.put(episode("e"), **names)

    @pytest.mark.parametrize("name", ["", "a/b", "/", "a\nb", "a\0", "\x7f", "\u2028", "x" * 257, None, 5])
    @pytest.mark.parametrize("level", ["user", "session", "agent"])
    def test_what_is_no_name_is_refused(self, episodes: Episodes, level: str, name: str) -> None:
        names = {"user": "ann", "session": "s1", "agent": "helper", level: name}
        with pytest.raises(MemoryScopeError) as caught:
            episodes.put(episode("e"), **names)
        assert caught.value.operation == "put"
        assert level in caught.value.violation
        if name is not None or level == "user":
            with pytest.raises(MemoryScopeError):
                episodes.recent(**{**names, "limit": 1})  # type: ignore[arg-type]
        assert episodes.health().fragment_count == 0

    def test_a_timestamp_has_a_time_zone(self, episodes: Episodes) -> None:
        naive = episode("e").model_copy(update={"timestamp": datetime(2026, 5, 18)})
        beyond = episode("e").model_copy(
            update={"timestamp": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))}
        )
        for bad in (naive, beyond):
            with pytest.raises(InvalidRecord, match="timestamp"):
                put(episodes, bad)
        for blank in ("", " "):
            with pytest.raises(InvalidRecord, match="id must not be"):
                put(episodes, episode("e").model_copy(update={"id": blank}))

    def test_metadata_is_json(self, episodes: Episodes) -> None:
        with pytest.raises(InvalidRecord, match=r"data\.metadata"):
            put(episodes, episode("e", bad=float("nan")))

    def test_forgetting_is_for_the_owner(self, episodes: Episodes, store: ChronoStore) -> None:
        put(episodes, episode("e"))
        assert not episodes.forget("e", user="bob", session="s1", agent="helper")
        assert not episodes.forget("f", user="ann", session="s1", agent="helper")
        assert episodes.forget("e", user="ann", session="s1", agent="helper")
        assert episodes.recent("ann", limit=9) == []
        assert [event.op for event in store.everyone().history("episode:e")] == ["upsert", "delete"]


#: Names that meant something to somebody: patterns, quotes, prefixes, pairs of case and normal forms, JSON.
NASTY = [
    *("alice", "aliceX", "Alice", "al_ce", "alice%", "%", "_", "*", "..", ".", "$", "\\", "'", '"', "a'--"),
    *("é", "e\u0301", " ", "a ", '{"user":"alice"}', "user", "session", "😀", "ß", "ss", "İ", "x" * 256),
]
NAMES = st.one_of(
    st.sampled_from(NASTY),
    st.text(
        st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="/"),
        min_size=1,
        max_size=8,
    ),
)


@settings(
    max_examples=share(25, 500), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(scopes=st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=8, unique=True))
def test_no_name_sees_what_is_anothers(
    tmp_path_factory: pytest.TempPathFactory, scopes: list[tuple[str, str, str]]
) -> None:
    with (
        ChronoStore(tmp_path_factory.mktemp("names"), durability="off") as store,
        Episodes(store) as episodes,
    ):
        for number, (user, session, agent) in enumerate(scopes):
            put(episodes, episode(f"e{number}", user=user, session=session, agent=agent))
        for user, session, agent in scopes:
            for asked in ({"session": session}, {"agent": agent}, {"session": session, "agent": agent}, {}):
                wanted = {
                    f"e{number}"
                    for number, names in enumerate(scopes)
                    if names[0] == user
                    and asked.get("session", names[1]) == names[1]
                    and asked.get("agent", names[2]) == names[2]
                }
                assert set(ids(episodes.recent(user, **asked, limit=99))) == wanted


class TestPutAwaited:
    @pytest.mark.parametrize("durability", ["full", "normal", "off"])
    def test_all_that_is_put_is_there_wherever_it_was_done(self, tmp_path: Path, durability: str) -> None:
        put_at_once = Episodes.put_at_once
        done: list[bool] = []

        def counted(self: Episodes, *args: Any, **names: Any) -> bool:
            done.append(put_at_once(self, *args, **names))
            return done[-1]

        async def live(memory: ChronoMemoryStore) -> None:
            for number in range(300):
                one = episode(f"e{number}", minute=number)
                await memory.put(one, user="ann", session="s1", agent="helper")

        with (
            ChronoStore(tmp_path, durability=durability) as store,
            pytest.MonkeyPatch.context() as patched,
        ):
            patched.setattr(Episodes, "put_at_once", counted)
            memory = ChronoMemoryStore(store)
            asyncio.run(live(memory))
            assert len(memory.episodes.recent("ann", limit=999)) == 300
            assert store.verify().valid
        # Nobody waits for a disk on the spot; how often it can be done there depends on the machine.
        assert len(done) == 300 and not done[0]
        assert durability != "full" or not any(done)

    def test_a_task_never_waits_for_another_writer_or_for_the_log(self, tmp_path: Path) -> None:
        episodes = Episodes(ChronoStore(tmp_path))
        one = episode("e")
        assert not episodes.put_at_once(one, user="ann", session="s1", agent="helper")  # not open yet
        put(episodes, one)
        with (tmp_path / ".chronomemory" / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert not episodes.put_at_once(one, user="ann", session="s1", agent="helper")
            fcntl.flock(lock, fcntl.LOCK_UN)
        episodes.store.close()

    def test_what_is_refused_is_refused_on_the_spot_too(self, episodes: Episodes) -> None:
        put(episodes, episode("e"))
        for _ in range(20):
            put(episodes, episode("f"))
            with pytest.raises(MemoryScopeError, match="the episode says"):
                episodes.put_at_once(episode("e"), user="bob", session="s1", agent="helper")
            try:
                done = episodes.put_at_once(
                    episode("e", user="bob"), user="bob", session="s1", agent="helper"
                )
            except MemoryScopeError as refused:
                assert "is taken" in str(refused)
            else:
                assert not done
        assert episodes.recent("bob", limit=9) == []


class TestLife:
    def test_bootstrap_makes_the_folders_and_may_be_repeated(self, tmp_path: Path) -> None:
        async def live() -> None:
            memory = ChronoMemoryStore(tmp_path / "a" / "b")
            await memory.bootstrap()
            await memory.bootstrap()
            await memory.put(episode("e"), user="ann", session="s1", agent="helper")
            health = await memory.health()
            assert (health.ok, health.fragment_count, health.version, health.warnings) == (True, 1, 1, [])
            await memory.close()
            assert ids(await memory.recent("ann", limit=1)) == ["e"]
            await memory.close()

        asyncio.run(live())
        assert (tmp_path / "a" / "b").is_dir()

    def test_health_tells_the_lock_and_the_file_system(
        self, episodes: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert episodes.health().lock_state == "none"
        put(episodes, episode("e"))
        assert episodes.health().lock_state == "free"
        with (tmp_path / ".chronomemory" / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert episodes.health().lock_state == "held"
        mounts = tmp_path / "mounts"
        mounts.write_text("1 1 0:1 / / rw - nfs4 server:/ rw\n")
        monkeypatch.setattr("chronomemory.layout._MOUNTS", mounts)
        told = episodes.health()
        assert told.fs_type == "nfs4"
        assert len(told.warnings) == 1 and "nfs4" in told.warnings[0]

    def test_columns_can_be_added_and_nothing_else(self, episodes: Episodes, facts: Facts) -> None:
        put(episodes, episode("e"), episode("f", minute=1, mood="glad"))
        add = {"op": "add_column", "name": "mood", "nullable": True}
        for store in (episodes, facts):
            for operation, reason in (
                ({**add, "op": "drop_column"}, "v1-add-column-only"),
                ({"name": "mood"}, "v1-add-column-only"),
                ({**add, "nullable": False}, "non-nullable-add"),
                ({"op": "add_column", "name": "mood"}, "non-nullable-add"),
            ):
                with pytest.raises(MigrationNotSupported) as caught:
                    store.migrate(MigrationPlan(target_version=2, operations=[add, operation]))
                assert caught.value.reason == reason
            assert store.health().version == 1
            store.migrate(MigrationPlan(target_version=2, operations=[add]))
            assert store.health().version == 2
        assert [one.metadata for one in episodes.recent("ann", limit=9)] == [{"mood": "glad"}, {"mood": None}]
        matched = [delta.source_episode_ids for delta in episodes.consolidate(rule("mood IS NULL"))]
        assert matched == [["e"]]
        events = episodes.store.everyone().history("rule:columns:episode")
        assert [event.op for event in events] == ["upsert"]

    def test_a_moment_is_kept_as_it_was_told(self, episodes: Episodes) -> None:
        put(episodes, episode("e"))
        assert episodes.recent("ann", limit=1)[0].timestamp == START
