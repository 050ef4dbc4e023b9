"""`erase` says what goes, asks, and leaves nothing behind; and `--check` finds what is left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from chronomemory import ChronoStore
from cli_answer import Run


def test_erase_takes_a_record_out_of_everything(run: Run) -> None:
    run("put", "mia", "--label", "Mia lives in Elm Street")
    run("put", "tea", "--label", "Tea at four")
    run("backup")
    run("compact")
    assert run("erase", "--check", "elm street").code == 1
    told = run("erase", "mia", "--reason", "asked for", "--yes", "--json").document
    assert (told["ids"], told["lines"], len(told["backups"])) == (["mia"], 1, 1)
    assert Path(told["new_backup"]).is_dir() and told["backup_fault"] is None
    assert run("erase", "--check", "elm street").code == 0
    assert run("get", "mia").code == 1
    assert run("get", "tea").code == 0
    assert run("verify").code == 0
    again = run("erase", "mia", "--reason", "asked for", "--yes")
    assert again.code == 1 and "nothing was ever written for 'mia', or it was erased before" in again.stderr


def test_erase_asks_and_wants_a_reason(run: Run) -> None:
    run("put", "mia", "--label", "Mia")
    assert run("erase", "mia", "--yes").code == 2
    assert run("erase", "--reason", "asked for", "--yes").code == 2
    assert run("erase", "mia", "--reason", "asked for").code == 2
    assert run("get", "mia").code == 0


def test_erase_takes_all_that_carries_the_names(run: Run, tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "S"})
        store.scoped(user="mia").upsert({"id": "U"})
        store.scoped(user="mia", session="1").upsert({"id": "V"})
        store.scoped(user="bob", session="1").upsert({"id": "W"})
    why = ("--reason", "asked for", "--yes", "--json")
    assert run("erase", "--user", "mia", "--session", "1", *why).document["ids"] == ["V"]
    assert run("erase", "--user", "mia", *why).document["ids"] == ["U"]
    assert run("erase", "--agent", "nobody", *why).document["seq"] is None
    assert run("erase", "--session", "1", *why).document["ids"] == ["W"]
    assert run("erase", "S", "--user", "mia", "--reason", "asked for", "--yes").code == 2
    assert run("get", "S").code == 0


def test_check_reads_from_stdin_and_knows_spellings(run: Run, tmp_path: Path) -> None:
    run("put", "A", "--label", "Zoë/Müller")
    for text in ("zoë/müller", "ZOË/MÜLLER", "Zoe\u0308/Mu\u0308ller"):
        found = run("erase", "--check", "-", "--json", stdin=text.encode())
        assert found.code == 1, text
        assert "events.wal" in found.document["found"]
        assert text not in found.stdout
    assert run("erase", "--check", "nobody").code == 0
    assert run("erase", "--check", "").code == 2
    (tmp_path / ".chronomemory" / "nobody.txt").write_bytes(b"")
    assert run("erase", "--check", "nobody").code == 1


def test_restore_brings_back_what_was_erased_only_if_told_so(run: Run, tmp_path: Path) -> None:
    run("put", "mia", "--label", "Mia lives in Elm Street")
    copy = tmp_path / "copy"
    shutil.copytree(run("backup", "--json").document["path"], copy)
    run("erase", "mia", "--reason", "asked for", "--yes")
    assert run("restore", str(copy)).code == 0
    assert run("get", "mia").code == 1
    assert run("erase", "--check", "Elm Street").code == 0
    assert run("restore", str(copy), "--bring-back").code == 0
    assert run("get", "mia").code == 0


def test_a_misspelled_name_is_a_finding(run: Run, tmp_path: Path) -> None:
    run("put", "A", "--user", "ann", "--label", "likes tea")
    before = run("replay", "--json").stdout
    for more in ([], ["--dry-run"], ["--json"]):
        answer = run("erase", "--user", "anm", "--reason", "asked for", "--yes", *more)
        assert answer.code == 1 and "nothing was ever written for user=anm" in answer.stderr
    assert answer.document["seq"] is None and answer.document["counts"]["ids"] == 0
    partly = run("erase", "A", "B", "--reason", "asked for", "--dry-run")
    assert partly.code == 0 and "nothing was ever written for 'B'" in partly.stderr
    assert run("replay", "--json").stdout == before


def test_a_dry_run_says_what_would_go_and_asks_nobody(run: Run) -> None:
    run("put", "A", "--user", "ann", "--label", "likes tea")
    before = run("replay", "--json").stdout
    shown = run("erase", "--user", "ann", "--reason", "asked for", "--dry-run")
    assert shown.code == 0 and "records" in shown.stdout and "erased" not in shown.stdout
    told = run("erase", "--user", "ann", "--reason", "asked for", "--dry-run", "--json").document
    assert (told["ids"], told["dry_run"], told["seq"], told["after"]) == (["A"], True, None, None)
    assert run("replay", "--json").stdout == before and run("get", "A", "--user", "ann").code == 0


def test_the_certificate_is_written_to_a_file_without_ids_unless_asked(run: Run, tmp_path: Path) -> None:
    for name in "ABC":
        run("put", name, "--user", "ann-of-elm-street", "--label", "likes tea")
    file, named = tmp_path / "done.json", tmp_path / "named.json"
    order = ("--reason", "asked for", "--yes", "--certificate")
    printed = run("erase", "A", *order, file, "--json").document
    kept = json.loads(file.read_text())
    hidden = dict.fromkeys(("ids", "belonging", "mentions", "removed_files", "page_files"))
    assert kept == {**printed, **hidden, "asked": kept["asked"]}
    assert kept["asked"] == {"ids": None, "scope": None, "where": None}
    assert printed["asked"]["ids"] == ["A"] and printed["counts"] == kept["counts"]
    assert run("erase", "B", *order, file).code == 2, "it is never written over"
    assert run("get", "B", "--user", "ann-of-elm-street").code == 0, "and nothing is erased without it"
    assert run("erase", "--user", "ann-of-elm-street", *order, named, "--with-ids").code == 0
    told = json.loads(named.read_text())
    assert told["ids"] == ["B", "C"] and told["asked"]["scope"] == {"user": "ann-of-elm-street"}
    assert run("erase", "--check", "ann-of-elm-street").code == 0
    assert run("erase", "X", *order, tmp_path / "none.json").code == 1
    assert not (tmp_path / "none.json").exists()


def test_a_certificate_that_cannot_be_written_stops_the_erasure(run: Run, tmp_path: Path) -> None:
    run("put", "mia", "--label", "Mia")
    (tmp_path / "file").touch()
    asked = ("erase", "mia", "--reason", "asked for", "--yes", "--certificate")
    for place, code in (("missing/c.json", 1), ("file/c.json", 1), ("file", 2)):
        assert run(*asked, str(tmp_path / place)).code == code
        assert run("get", "mia").code == 0
    assert run(*asked, str(tmp_path / "c.json")).code == 0


def test_a_dry_run_needs_no_reason(run: Run) -> None:
    run("put", "mia", "--label", "Mia")
    planned = run("erase", "mia", "--dry-run", "--json")
    assert planned.code == 0 and planned.document["ids"] == ["mia"]
    assert run("get", "mia").code == 0
