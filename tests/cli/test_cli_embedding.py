"""A person can name an embedder, and the tokens that it offers are kept and asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, Memory
from cli_answer import Run
from word_embedder import SynonymEmbedder, WordEmbedder

NAME = "word_embedder:SynonymEmbedder"
CAR, TEA = "Anns automobile stands outside", "Ann takes her beverage at four"


@pytest.fixture
def remembered(run: Run) -> None:
    for content in (CAR, TEA):
        assert run("blocks", "remember", content, "--embedder", NAME).code == 0


def spaces(folder: Path) -> dict[str, int]:
    with ChronoStore(folder) as store:
        return {space.name: space.living for space in store.vectors.spaces()}


@pytest.mark.usefixtures("remembered")
def test_codes_are_kept_with_a_block_and_asked_by_a_recall(run: Run, tmp_path: Path) -> None:
    assert spaces(tmp_path) == {"blocks.synonyms": 2, "blocks-tokens.synonyms": 2}
    told = run("recall", "whose car", "--embedder", NAME, "--json").document["blocks"]
    with Memory(tmp_path, embedder=SynonymEmbedder()) as memory:
        found = memory.recall("whose car")
        assert [(block["id"], block["score"]) for block in told] == [
            (block.id, pytest.approx(block.score, abs=1e-3)) for block in found
        ]
    assert told[0]["content"] == CAR
    assert "automobile" in run("frame", "attention", "whose car", "-k", "1", "--embedder", NAME).stdout


@pytest.mark.usefixtures("remembered")
def test_a_search_asks_them_and_says_what_they_add(run: Run) -> None:
    assert run("search", "car", "--json").listing == []
    first, *_ = run("search", "car", "--embedder", NAME, "--json", "--explain").listing
    assert first["record"]["data"]["content"] == CAR
    assert first["why"]["tokens"] > 0.9 and first["why"]["token_share"] == 1.0
    shown = run("search", "car", "--embedder", NAME, "--explain").stdout
    assert "of the question's tokens" in shown and "token share" in shown


def test_blocks_get_their_codes_with_a_dream_and_later(run: Run, tmp_path: Path) -> None:
    run("learn", CAR)
    assert run("dream", "--embedder", NAME, "--model", "other").code == 0
    run("learn", TEA)
    run("dream")
    assert spaces(tmp_path)["blocks-tokens.other"] == 1
    assert (
        run("blocks", "reembed", "--embedder", NAME, "--model", "other", "--json").document["embedded"] == 1
    )
    assert spaces(tmp_path)["blocks-tokens.other"] == 2
    assert run("dream", "--everyone", "--embedder", NAME).code == 0


def test_records_that_a_program_embedded_are_searched_likewise(run: Run, tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert(ChronoRecord(id="A", label=CAR))
        store.vectors.attach_tokens("A", WordEmbedder().embed_query_tokens(CAR.lower()), model="words")
    name = "word_embedder:WordEmbedder"
    assert [hit["record"]["id"] for hit in run("search", "stands", "--embedder", name, "--json").listing] == [
        "A"
    ]
    told = run("search", "stands", "--embedder", NAME)
    assert told.code == 2 and "embedded by 'synonyms'" in told.stderr


def test_what_another_user_embedded_counts_for_nothing(run: Run) -> None:
    for content in (CAR, TEA):
        run("blocks", "remember", content, "--embedder", NAME, "--user", "ann")
    asked = ("search", "beverage", "--embedder", NAME, "--json")
    assert len(run(*asked, "--user", "ann").listing) == 2
    told = run(*asked, "--user", "bob")
    assert told.code == 2 and "embedded by 'synonyms'" in told.stderr
    assert run("recall", "car", "--user", "bob", "--embedder", NAME, "--json").document["blocks"] == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--embedder", "word_embedder"], "names no embedder"),
        (["--embedder", ":Name"], "names no embedder"),
        (["--embedder", "no_such_module_here:Name"], "cannot be imported"),
        (["--embedder", "word_embedder:Nothing"], "has no Nothing"),
        (["--embedder", "word_embedder:DIM"], "is no embedder and makes none"),
        (["--embedder", "word_embedder:READY", "--model", "m"], "takes no model"),
        (["--embedder", "word_embedder:WordEmbedder", "--model", "m"], "made no embedder"),
        (["--embedder", "chronomemory.embedders:CallableTokenEmbedder"], "made no embedder"),
        (["--embedder", NAME, "--endpoint", "http://127.0.0.1:1"], "both embed"),
        (["--model", "m"], "belong together"),
        (["--embedder", "builtins:dict"], "has no model_name"),
    ],
)
def test_what_is_no_embedder_is_refused_in_a_sentence(
    run: Run, tmp_path: Path, options: list[str], told: str
) -> None:
    answer = run("blocks", "remember", CAR, *options)
    assert answer.code == 2 and told in " ".join(answer.stderr.split())
    assert not (tmp_path / ".chronomemory" / "vectors").exists()


def test_one_that_is_there_already_is_taken_as_it_is(run: Run, tmp_path: Path) -> None:
    assert run("blocks", "remember", CAR, "--embedder", "word_embedder:READY").code == 0
    assert spaces(tmp_path)["blocks-tokens.ready"] == 1
