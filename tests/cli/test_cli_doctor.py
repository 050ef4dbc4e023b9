"""The doctor finds what is wrong, and says what to do about each finding."""

from __future__ import annotations

from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.cli import doctor as doctor_module
from cli_answer import Run


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the server, whose start takes a moment and is looked at by one test."""
    looks = tuple(look for look in doctor_module._LOOKS if look is not doctor_module._mcp)
    monkeypatch.setattr(doctor_module, "_LOOKS", looks)


def findings(run: Run) -> dict[str, list[dict[str, str]]]:
    told: dict[str, list[dict[str, str]]] = {}
    for finding in run("doctor", "--json").document["findings"]:
        told.setdefault(finding["what"], []).append(finding)
    return told


def test_a_sound_store_is_well(run: Run, tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "label": "Water is wet"})
    answer = run("doctor")
    assert answer.code == 0
    assert "every hash holds" in answer.stdout
    told = findings(run)
    assert {name: {each["how"] for each in each_of} for name, each_of in told.items()} == {
        "versions": {"ok"},
        "folder": {"ok"},
        "store": {"ok"},
        "head note": {"ok"},
        "locks": {"ok"},
        "disk": {"ok"},
        "index": {"ok"},
    }


def test_nothing_is_made_by_looking(run: Run, tmp_path: Path) -> None:
    assert findings(run)["folder"][0]["said"].startswith("no log yet")
    assert list(tmp_path.iterdir()) == []


def test_damage_and_a_lost_head_are_bad_and_say_what_to_do(run: Run, tmp_path: Path, log: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(5):
            store.upsert({"id": f"A{number}", "label": "Water is wet"})
    whole = log.read_bytes()
    log.write_bytes(whole.replace(b"Water is wet", b"Water is dry", 1))
    answer = run("doctor")
    assert answer.code == 1
    told = findings(run)
    assert told["store"][0]["how"] == "bad"
    assert "repair" in told["store"][0]["do"]
    log.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    told = findings(run)
    assert told["head note"][0]["how"] == "bad"
    assert "accept-head" in told["head note"][0]["do"]
    assert all(each["do"] for each_of in told.values() for each in each_of if each["how"] != "ok")


def test_a_lock_that_is_held_names_its_holder(run: Run, tmp_path: Path) -> None:
    with ChronoStore(tmp_path, exclusive=True, own_engine=True) as store:
        store.upsert({"id": "A"})
        [lock] = findings(run)["locks"]
    assert lock["how"] == "note"
    assert "held now by" in lock["said"]
    assert findings(run)["locks"][0]["how"] == "ok"


def test_the_server_is_started_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp.server", reason="the extra mcp is not installed")
    monkeypatch.setattr(doctor_module, "_LOOKS", (doctor_module._mcp,))
    [told] = findings(run)["mcp"]
    assert told["how"] in ("ok", "note")
    assert "started, answered and ended in" in told["said"]
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_it_says_how_to_install_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise doctor_module.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor_module, "_LOOKS", (doctor_module._mcp,))
    monkeypatch.setattr(doctor_module.importlib.metadata, "version", missing)
    [told] = findings(run)["mcp"]
    assert (told["how"], "chronomemory-rs[mcp]" in told["do"]) == ("note", True)
