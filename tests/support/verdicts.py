"""What the corpus said, and what two verifiers have to agree on."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus"
VERIFIER = ROOT / "python" / "chronomemory" / "verify_log" / "verify_log.py"
LOGS: dict[str, Any] = json.loads((CORPUS / "verdicts.json").read_bytes())
FOLDERS: dict[str, Any] = json.loads((CORPUS / "folder_verdicts.json").read_bytes())
MIB = 1024 * 1024


def load_verifier() -> Any:
    """Return the independent verifier as a module; it is a script that imports those beside it."""
    sys.path.insert(0, str(VERIFIER.parent))  # as for a script: what lies beside it can be imported
    spec = importlib.util.spec_from_file_location("verify_log", VERIFIER)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


verify_log = load_verifier()


def log_of(name: str) -> tuple[bytes, bytes | None]:
    """A log of the corpus and its `synced`, if it has one."""
    synced = CORPUS / "logs" / f"{name}.synced"
    return (CORPUS / "logs" / f"{name}.wal").read_bytes(), synced.read_bytes() if synced.exists() else None


def place(folder: Path, data: bytes, synced: bytes | None = None) -> Path:
    """Make a project's `.chronomemory` of a log."""
    inner = folder / ".chronomemory"
    inner.mkdir()
    (inner / "events.wal").write_bytes(data)
    if synced is not None:
        (inner / "synced").write_bytes(synced)
    return inner


def verdict_of(report: dict[str, Any]) -> dict[str, Any]:
    """A report in the shape of the corpus."""
    return {
        "valid": report["valid"],
        "damage": sorted([found["offset"], found["kind"]] for found in report["damage"]),
        "tail_offset": report["tail"]["offset"] if report["tail"] else None,
        "events": report["events"],
        "scopes": [[found["kind"], found["id"], found["seq"]] for found in report["scopes"]],
        "returned": sorted(found["path"] for found in report["returned"]),
        "damaged_synced": report["damaged_synced"],
    }


def expected(verdict: dict[str, Any]) -> dict[str, Any]:
    """A verdict of the corpus without its note."""
    wanted = {name: verdict[name] for name in ("valid", "tail_offset", "events")}
    beside = {name: verdict.get(name, []) for name in ("scopes", "returned")}
    beside["damaged_synced"] = verdict.get("damaged_synced", False)
    return {**wanted, "damage": sorted(verdict["damage"]), **beside}


def essence(report: dict[str, Any]) -> dict[str, Any]:
    """What two verifiers must agree on; reasons and notes are free text."""
    same = (
        "valid",
        "events",
        "first_seq",
        "last_seq",
        "head",
        "bytes",
        "committed_end",
        "base",
        "damaged_synced",
    )
    damage = sorted((found["path"], found["offset"], found["kind"]) for found in report["damage"])
    tail = report["tail"] and (report["tail"]["offset"], report["tail"]["length"])
    scopes = [(found["kind"], found["id"], found["seq"]) for found in report["scopes"]]
    returned = sorted(found["path"] for found in report["returned"])
    found = {"damage": damage, "tail": tail, "scopes": scopes, "returned": returned}
    return {**{name: report[name] for name in same}, **found}
