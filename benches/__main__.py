"""Measures the store beside its peers: ``python -m benches run [--quick] [--only PARTS]``.

``run`` writes the results as JSON and makes the page and its plots of them; ``report`` makes these again of
the file. ``--base`` names the Python of another build, which is measured beside this one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benches import harness, machine, parts


def run(options: argparse.Namespace) -> int:
    chosen = options.only.split(",") if options.only else list(harness.PARTS)
    if unknown := set(chosen) - set(harness.PARTS):
        raise SystemExit(
            f"unknown parts {', '.join(sorted(unknown))}: choose from {', '.join(harness.PARTS)}"
        )
    facts = machine.facts(harness.ROOT, options.build)
    profile = harness.PROFILES[options.profile]
    options.results.parent.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=options.folder, prefix="benches-") as folder:
        measured = harness.Run(profile, Path(folder), options.base, not options.alone, options.rounds)

        def save() -> None:
            document = json.dumps(measured.document(facts), indent=1)
            options.results.write_text(document + "\n", encoding="utf-8")

        measured.measure([part for part in harness.PARTS if part in chosen], save)
    print(f"wrote {options.results}")
    if not options.no_report:
        report([options.results], options.page)
    return 1 if measured.faults else 0


def report(results: Sequence[Path], page: Path) -> None:
    from benches import plots, report  # noqa: PLC0415 - workers need no matplotlib

    document = report.merged([json.loads(file.read_text(encoding="utf-8")) for file in results])
    images = plots.draw(document, page.parent / "images") if plots.available() else []
    page.write_text(report.page(document, images), encoding="utf-8")
    print(f"wrote {page} and {len(images)} plots")


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benches", description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs = verbs.add_parser("run", help="measure, and write results, page and plots")
    runs.add_argument("--quick", dest="profile", action="store_const", const="quick", default="full")
    runs.add_argument("--profile", choices=sorted(harness.PROFILES), help="how much is measured")
    runs.add_argument("--only", metavar="PARTS", help=f"some of {','.join(harness.PARTS)}")
    runs.add_argument("--rounds", type=int, help="rounds of every measurement")
    runs.add_argument("--alone", action="store_true", help="without peers")
    runs.add_argument("--base", metavar="PYTHON", help="the Python of another build to compare with")
    runs.add_argument("--build", default="release", help="the name of this build in the report")
    runs.add_argument("--folder", type=Path, help="where stores are written; a temporary folder otherwise")
    runs.add_argument("--results", type=Path, default=harness.ROOT / "target" / "benchmarks.json")
    runs.add_argument("--no-report", action="store_true", help="write the results alone")
    again = verbs.add_parser("report", help="make page and plots of results")
    again.add_argument("results", type=Path, nargs="+", help="a later file replaces what an earlier one has")
    for one in (runs, again):
        one.add_argument("--page", type=Path, default=harness.ROOT / "docs" / "benchmarks.md")
    worker = verbs.add_parser("worker", help="measure one system (used by run)")
    worker.add_argument("work", choices=("fill", "before", "measure"))
    worker.add_argument("order", type=json.loads)
    options = parser.parse_args(given)
    parts.load(*([options.order.pop("module")] if options.verb == "worker" else []))
    if options.verb == "worker":
        harness.serve(options.work, options.order)
    elif options.verb == "report":
        report(options.results, options.page)
    else:
        return run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
