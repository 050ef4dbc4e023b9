"""Writes the logs that every verifier must judge alike, with verdicts given by hand in cases_*.py.

    python tests/corpus/make_corpus.py [FOLDER]      FOLDER is the one of this file unless named

No verdict is computed by a verifier: a case names the lines that are bad, and only offsets are added up here.
"""

import json
import sys
from pathlib import Path

import cases_base
import cases_batches
import cases_erased
import cases_erased_badly
import cases_fields
import cases_foreign
import cases_links
import cases_moments
import cases_packed
import cases_past_bases
import cases_replaced
import cases_scopes
import cases_spelling
import cases_synced
from craft import Case


def logs() -> list[Case]:
    parts = (cases_links, cases_batches, cases_synced, cases_fields, cases_spelling, cases_scopes)
    return [case for part in parts for case in part.cases()]


def folders() -> list[Case]:
    parts = (cases_base, cases_moments, cases_foreign, cases_packed, cases_replaced)
    parts += (cases_erased, cases_erased_badly, cases_past_bases)
    return [*(case for part in parts for case in part.cases()), *cases_scopes.folders()]


def files_of_log(case: Case) -> dict[str, bytes]:
    files = {f"logs/{case.name}.wal": b"".join(case.lines)}
    return files if case.synced is None else {**files, f"logs/{case.name}.synced": case.synced}


def files_of_folder(case: Case) -> dict[str, bytes]:
    inside = {"events.wal": b"".join(case.lines), **case.files}
    return {f"folders/{case.name}/{name}": content for name, content in inside.items()}


def verdicts(cases: list[Case]) -> bytes:
    found = {case.name: case.verdict() for case in cases}
    if len(found) != len(cases):
        raise ValueError("two cases have one name")
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    return f"{{\n{lines}\n}}\n".encode()


def corpus() -> dict[str, bytes]:
    """Every file of the corpus by its path, so that a test can compare them with what is on disk."""
    files = {"verdicts.json": verdicts(logs()), "folder_verdicts.json": verdicts(folders())}
    for case in logs():
        files |= files_of_log(case)
    for case in folders():
        files |= files_of_folder(case)
    return files


def main(folder: Path) -> None:
    files = corpus()
    for old in [
        path for name in ("logs", "folders") for path in (folder / name).rglob("*") if path.is_file()
    ]:
        if old.relative_to(folder).as_posix() not in files:
            old.unlink()
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
