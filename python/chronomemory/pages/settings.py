"""The knobs of a writer: ``[writer]`` in ``.chronomemory/config.toml``, which we read and never write."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from chronomemory.layout import log_folder, read_config
from chronomemory.pages.errors import SettingsError

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover (the tests run where it is part of Python)
    import tomli as tomllib

CONFIG_FILE = "config.toml"
_SECTION = "writer"


@dataclass(frozen=True, slots=True)
class Settings:
    """When a page is long, and when it sleeps."""

    #: Above this an append suggests to compact the page, and above the other it flags it.
    soft_limit_tokens: int = 20_000
    hard_limit_tokens: int = 50_000
    #: A page without writes for so many days becomes dormant.
    auto_dormant_days: int = 30

    @classmethod
    def of_project(cls, project: Path) -> Settings:
        """Read the settings of a project; without a file or section they are the defaults."""
        place = log_folder(project) / CONFIG_FILE
        try:
            config = tomllib.loads(read_config(place))
        except (FileNotFoundError, NotADirectoryError):
            return cls()
        except (ValueError, OSError, RecursionError) as error:
            raise SettingsError(f"{place} cannot be read: {error}") from None
        section = config.get(_SECTION, {})
        if not isinstance(section, dict):
            raise SettingsError(f"{place}: [{_SECTION}] must be a section")
        known = {knob.name for knob in fields(cls)}
        given = {
            name: _days_or_tokens(place, name, value) for name, value in section.items() if name in known
        }
        return cls(**given)


def _days_or_tokens(place: Path, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{place}: {name} must be a whole number of at least 1, got {value!r}")
    return value
