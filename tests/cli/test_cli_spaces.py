"""The command line tells which embeddings there are."""

from __future__ import annotations

from pathlib import Path

from chronomemory import ChronoStore
from cli_answer import Run


def test_spaces_are_listed(run: Run, tmp_path: Path) -> None:
    assert "no embeddings yet" in run("spaces").stdout
    assert run("spaces", "--json").document == {"spaces": []}
    run("put", "A")
    with ChronoStore(tmp_path) as store:
        store.vectors.attach("A", [1.0, 2.0], model="a model")
        store.vectors.attach("A", [1.0, 2.0, 3.0], space="other", model="another")
    shown = run("spaces").stdout
    assert "default *" in shown
    assert "a model" in shown
    (first, second) = run("spaces", "--json").document["spaces"]
    assert (first["name"], first["dim"], first["living"], first["is_default"]) == ("default", 2, 1, True)
    assert (second["model"], second["bytes"], second["damaged"]) == ("another", 12, 0)
