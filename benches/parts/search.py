"""Measures search by words, beside other full-text indexes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import count as numbers
from pathlib import Path
from typing import Any

from benches.data import questions, texts
from benches.harness import Job, Work, dataset, task
from benches.keep import open_keep

ASKED = 50
TOP = 10
SETTINGS = {
    "tantivy": "tokenizer `en_stem`, text stored, one commit",
    "sqlite": "FTS5 with `porter unicode61`, ordered by `bm25`",
    "duckdb": "no search by words: that is an extension, downloaded when it is first used",
}


class OurWords:
    def __init__(self, folder: Path, **options: Any) -> None:
        self.keep = open_keep("ours", folder, **options)

    def add(self, first: int, given: list[str]) -> None:
        self.keep.put_many(
            {"id": f"T{first + at}", "kind": "note", "label": text} for at, text in enumerate(given)
        )

    def search(self, asked: str, *, context: bool = True) -> list[str]:
        return [str(hit.record.label) for hit in self.keep.store.search(asked, limit=TOP, context=context)]

    def without_context(self, asked: str) -> list[str]:
        return self.search(asked, context=False)

    def close(self) -> None:
        self.keep.close()


class Tantivy:
    def __init__(self, folder: Path) -> None:
        import tantivy  # noqa: PLC0415

        folder.mkdir(exist_ok=True)
        schema = tantivy.SchemaBuilder().add_text_field("text", stored=True, tokenizer_name="en_stem").build()
        self._index, self._document = tantivy.Index(schema, path=str(folder)), tantivy.Document
        self._searcher = self._index.searcher()

    def add(self, first: int, given: list[str]) -> None:
        writer = self._index.writer()
        for text in given:
            writer.add_document(self._document(text=text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, asked: str) -> list[str]:
        query, searcher = self._index.parse_query(asked, ["text"]), self._searcher
        return [searcher.doc(place)["text"][0] for _, place in searcher.search(query, TOP).hits]

    def close(self) -> None:
        pass


class Fts:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._base = sqlite3.connect(folder / "base.sqlite", isolation_level=None)
        self._base.execute("pragma journal_mode=wal")
        self._base.execute("pragma synchronous=off")
        self._base.execute(
            "create virtual table if not exists t using fts5(text, tokenize='porter unicode61')"
        )

    def add(self, first: int, given: list[str]) -> None:
        self._base.execute("begin")
        self._base.executemany("insert into t values (?)", [(text,) for text in given])
        self._base.execute("commit")

    def search(self, asked: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in asked.split())
        found = self._base.execute(
            "select text from t where t match ? order by bm25(t) limit ?", (words, TOP)
        )
        return [text for (text,) in found]

    def close(self) -> None:
        self._base.close()


_INDEXES: dict[str, Callable[..., Any]] = {"ours": OurWords, "tantivy": Tantivy, "sqlite": Fts}


@dataset("texts")
def fill(job: Job) -> None:
    index = _INDEXES[job.family](job.dataset("texts"))
    index.add(0, list(texts(job.size)))
    index.search("anything")
    index.close()


def opened(job: Job) -> Any:
    options = {"verify": "quick"} if job.family == "ours" else {}
    index = _INDEXES[job.family](job.dataset("texts"), **options)
    job.stack.callback(index.close)
    return index


def _search(job: Job, terms: int) -> Work:
    index, asked = opened(job), questions(job.size, terms, ASKED)
    job.count = len(asked)
    search = index.without_context if job.setting else index.search
    assert set(asked[0].split()) & set(search(asked[0])[0].split())

    def work() -> int:
        return sum(len(search(words)) for words in asked)

    return work


for _name, _terms in (("one term", 1), ("two terms", 2)):
    task(
        "search",
        f"search, {_name}",
        "ours",
        "ours/no context",
        "tantivy",
        "sqlite",
        sizes="documents",
        dataset="texts",
        unit="µs",
    )(lambda job, _terms=_terms: _search(job, _terms))


@task(
    "search",
    "open and first search",
    "ours",
    "tantivy",
    "sqlite",
    sizes="records",
    dataset="texts",
    fresh=True,
)
def first(job: Job) -> Work:
    _INDEXES[job.family](job.folder / "other").close()
    (asked,) = questions(job.size, 2, 1)

    def work() -> bool:
        index = _INDEXES[job.family](job.dataset("texts"))
        job.finish = index.close
        return bool(index.search(asked))

    return work


@task("search", "one write, then a search", "ours", "sqlite", sizes="documents", dataset="texts", unit="µs")
def after_write(job: Job) -> Work:
    index, turn = opened(job), numbers()
    (asked,) = questions(job.size, 1, 1)

    def work() -> bool:
        number = next(turn)
        index.add(job.size + number, [f"unheard{number} {asked}"])
        return f"unheard{number}" in index.search(f"unheard{number}")[0]

    return work


@task(
    "search",
    "index documents",
    "ours",
    "tantivy",
    "sqlite",
    sizes="documents",
    fresh=True,
    unit="/s",
    rounds=3,
)
def indexing(job: Job) -> Work:
    """Write the documents, and search once."""
    index, given = _INDEXES[job.family](job.folder / "index"), list(texts(job.size))
    job.count, job.finish = job.size, index.close

    def work() -> bool:
        index.add(0, given)
        return bool(index.search(given[0]))

    return work
