"""The examples in the documentation of the modules run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import chronomemory
import pytest

PACKAGE = Path(chronomemory.__file__).parent


def modules_with_examples() -> list[str]:
    """The modules of the package that have an example; the second verifier is a script."""
    found = (
        path.relative_to(PACKAGE.parent).with_suffix("")
        for path in sorted(PACKAGE.rglob("*.py"))
        if ">>> " in path.read_text(encoding="utf-8") and path.parent.name != "verify_log"
    )
    return [".".join(path.parts).removesuffix(".__init__") for path in found]


def test_modules_with_examples_are_found() -> None:
    assert {"chronomemory.store", "chronomemory.blocks.memory"} <= set(modules_with_examples())


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
