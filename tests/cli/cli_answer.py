"""What the command line answered, as the tests look at it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        return json.loads(self.stdout)

    @property
    def listing(self) -> list[Any]:
        return [json.loads(line) for line in self.stdout.split("\n") if line]


Run = Callable[..., Answer]
