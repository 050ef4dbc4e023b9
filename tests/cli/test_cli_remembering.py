"""A block can be remembered, changed, shown and forgotten from a shell, by whose it is."""

from __future__ import annotations

from pathlib import Path

from chronomemory import Memory
from chronomemory.embedders import CallableEmbedder
from cli_answer import Run


def test_a_block_lives_and_is_put_away(run: Run) -> None:
    told = run("blocks", "remember", "Likes green tea", "-t", "pref", "--json").document
    assert told["status"] == "created"
    shown = run("blocks", "show", told["block_id"], "--json").document
    assert (shown["content"], shown["tags"], shown["status"]) == ("Likes green tea", ["pref"], "active")
    assert "Likes green tea" in run("blocks", "show", f"block:{told['block_id']}").stdout
    assert "Likes green tea" in run("search", "tea").stdout
    edited = run("blocks", "edit", told["block_id"], "Likes very green tea", "--json").document
    assert edited["status"] == "edited"
    run("dream")
    assert run("blocks", "forget", edited["block_id"]).code == 0
    assert run("blocks", "ls", "--json").document == {"blocks": []}
    assert run("blocks", "show", "nobody").code == 1


def test_the_new_takes_the_place_of_the_old(run: Run) -> None:
    old = run("blocks", "remember", "Lives in Paris", "--json").document["block_id"]
    run("blocks", "remember", "Lives in Berlin", "--supersedes", old)
    assert [block["content"] for block in run("blocks", "ls", "--json").document["blocks"]] == [
        "Lives in Berlin"
    ]


def test_users_have_blocks_of_their_own(run: Run) -> None:
    ann = run("blocks", "remember", "Likes tea", "--user", "ann", "--json").document["block_id"]
    bob = run("blocks", "remember", "Likes tea", "--user", "bob", "--json").document["block_id"]
    assert ann != bob
    found = run("recall", "tea", "--user", "ann", "--json").document["blocks"]
    assert [block["id"] for block in found] == [ann]
    assert found[0]["scope"] == {"user": "ann"}
    assert run("blocks", "ls", "--json").document == {"blocks": []}
    for verb in (("show",), ("forget",)):
        assert run("blocks", *verb, ann, "--user", "bob").code == 1
    assert run("blocks", "edit", ann, "Hates tea", "--user", "bob").code == 1
    assert "nothing was ever written for user=anm" in run("recall", "tea", "--user", "anm").stdout
    assert run("recall", "tea", "--user", "").code == 2


def test_who_only_reads_a_block_is_told_so(run: Run) -> None:
    shared = run("blocks", "remember", "The office opens at nine", "--json").document["block_id"]
    told = run("outcome", shared, "--signal", "1", "--user", "ann", "--json").document
    assert told == {"confidence": {}, "unknown": [], "wider": [shared], "not_relevant": []}
    misspelled = run("recall", "office", "--user", "anm")
    assert "opens at nine" in misspelled.stdout
    assert "nothing was ever written for user=anm" in misspelled.stderr
    assert "not yours to change" in run("outcome", shared, "--signal", "1", "--user", "ann").stderr
    assert run("blocks", "forget", shared, "--user", "ann").code == 2


def test_the_commands_for_records_say_where_a_block_is_to_be_found(run: Run) -> None:
    block = run("blocks", "remember", "Likes green tea", "--json").document["block_id"]
    for verb in ("get", "delete"):
        told = run(verb, block)
        assert (told.code, told.stdout) == (1, "")
        assert f"chronomemory blocks show {block}" in " ".join(told.stderr.split())
    told = run("delete", f"block:{block}")
    assert told.code == 2
    assert f"chronomemory blocks forget {block}" in " ".join(told.stderr.split())
    assert run("get", f"block:{block}").code == 0
    assert "blocks show" not in run("get", "NOBODY").stderr


def test_recall_explains_with_the_id_and_the_day(run: Run) -> None:
    block = run("blocks", "remember", "Likes green tea", "--json").document["block_id"]
    day = run("recall", "tea", "--json").document["blocks"][0]["created_at"][:10]
    assert f"block {block} of {day}" in run("recall", "tea", "--explain").stdout


def test_what_was_embedded_by_another_model_is_embedded_anew(run: Run, tmp_path: Path) -> None:
    with Memory(
        tmp_path, embedder=CallableEmbedder("other", lambda texts: [[1.0, 0.5] for _ in texts])
    ) as memory:
        memory.remember("Likes green tea")
    assert "reembed" in run("blocks", "status").stdout
    assert run("blocks", "reembed", "--json").document["embedded"] == 1
    assert "0 blocks" in run("blocks", "reembed").stdout
    assert "reembed" not in run("blocks", "status").stdout


def test_the_history_of_a_block_begins_with_what_it_says(run: Run) -> None:
    block = run("learn", "Likes green tea", "--json").document["block_id"]
    told = run("history", f"block:{block}").stdout
    assert "content Likes green tea" in told
    assert "label" not in told
