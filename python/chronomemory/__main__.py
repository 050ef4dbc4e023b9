"""The command ``chronomemory``, also run as ``python -m chronomemory``."""

from __future__ import annotations

import importlib
import sys
from io import TextIOWrapper

_NAME = "chronomemory"
#: The exit code after Ctrl-C, as shells report it.
INTERRUPTED = 130


def main() -> None:
    """Run the command of the arguments. Its modules are imported here, so that Ctrl-C can interrupt that."""
    try:
        # A terminal that cannot spell a character shows another one, rather than a traceback.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")
        if sys.argv[1:] == ["--version"]:  # without the time that typer takes
            print(_NAME, importlib.import_module("chronomemory._core").__version__)  # noqa: T201
        else:
            importlib.import_module("chronomemory.cli").app(prog_name=_NAME)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
