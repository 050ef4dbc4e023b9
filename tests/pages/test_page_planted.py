"""What an import planted under an id of this face leads nowhere outside, and breaks no verb."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from chronomemory.pages import Pages

SECRET = "the password is 1234"
NAMES = ("../../../secret", "..", ".hidden", "a\nb", "user-a/b", "user-../../x", "index", "user-", "nobody")


def exported(pages: Pages, kind: str) -> dict[str, Any]:
    found = pages.store.everyone().export_records(status=None, faces=True)
    return next(
        copy.deepcopy(record)
        for record in found
        if record["kind"] == kind and ":user-profile" in record["id"]
    )


def plant(pages: Pages, *records: dict[str, Any]) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in records)
    source = pages.store.project_root / "planted.ndjson"
    source.write_text(lines)
    pages.store.engine.unscoped().ingest(source, None, faces=True)


def used(pages: Pages) -> None:
    """Call every verb that goes through all there is."""
    pages.rebuild_index()
    pages.sync()
    pages.list()
    pages.recent(limit=5)
    pages.search("hello")
    pages.append("user-profile", "hello again", ["t"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "a" / "b" / "project"
    project.mkdir(parents=True)
    (tmp_path / "a" / "secret.md").write_text(f"---\ntitle: x\n---\n# Private\n\n{SECRET}\n")
    with Pages(project) as pages:
        pages.append("user-profile", "hello", ["t"])
    return project


def test_no_name_leads_out_of_the_folder(project: Path, tmp_path: Path) -> None:
    before = sorted(path for path in tmp_path.rglob("*") if not path.is_relative_to(project))
    with Pages(project) as pages:
        known = [one.name for one in pages.list()]
        page, entry = exported(pages, "page"), exported(pages, "entry")
        planted = []
        for name in NAMES:
            for record in (page, entry):
                bent = copy.deepcopy(record)
                bent["id"] = bent["id"].replace("user-profile", name)
                bent["data"] = {
                    key: value.replace("user-profile", name) if isinstance(value, str) else value
                    for key, value in bent["data"].items()
                }
                if record is page:
                    bent["data"]["earlier"] = [""]
                planted.append(bent)
        plant(pages, *planted)
        used(pages)
        assert [one.name for one in pages.list()] == known
        assert {one.page for one in pages.recent(limit=50)} == {"user-profile"}
        names = sorted(path.name for path in (project / "memory").iterdir() if path.suffix == ".md")
        assert names == sorted(["index.md", *(f"{name}.md" for name in known)])
    assert SECRET.encode() not in (project / ".chronomemory" / "events.wal").read_bytes()
    assert sorted(path for path in tmp_path.rglob("*") if not path.is_relative_to(project)) == before


def test_a_record_that_lacks_what_a_page_is_made_of_breaks_no_verb(project: Path) -> None:
    with Pages(project) as pages:
        page, entry = exported(pages, "page"), exported(pages, "entry")
        planted = []
        for number, name in enumerate(sorted(page["data"])):
            for value in (None, 7, "x", ["x", 7], {}, True):
                bent = copy.deepcopy(page)
                bent["id"] = page["id"].replace("user-profile", f"topic-p{number}")
                bent["data"] |= {"name": f"topic-p{number}", name: value}
                planted.append(bent)
        for number, name in enumerate(sorted(entry["data"])):
            for value in (None, 7, "x", ["x", 7], {}, True):
                bent = copy.deepcopy(entry)
                bent["id"] = f"{entry['id']}{number}"
                bent["data"] |= {name: value}
                planted.append(bent)
        for record in planted:
            plant(pages, record)
            used(pages)
        assert "user-profile" in [one.name for one in pages.list()]
        assert pages.text("user-profile").count("hello again") == len(planted)
        assert {one.content for one in pages.recent(limit=3)} == {"hello again"}
