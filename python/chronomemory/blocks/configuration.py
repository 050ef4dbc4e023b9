"""What a configuration may say of a memory, and where it may be written.

A dict, an object with ``model_dump()``, or a file (``.json``, ``.toml``), in sections. Nothing in it is
secret: keys of services stay in environment variables, which it may name.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.errors import ConfigError
from chronomemory.blocks.storage.config import MOST_RESULTS
from chronomemory.embedders import Embedder, EndpointEmbedder, LexicalEmbedder
from chronomemory.layout import read_config
from chronomemory.store import ChronoStore

if sys.version_info >= (3, 11):
    import tomllib


class Dumps(Protocol):
    """An object that tells what it holds, as Pydantic's do."""

    def model_dump(self) -> dict[str, Any]:
        """Return what it holds."""
        ...


#: Where a memory is.
Place: TypeAlias = str | os.PathLike[str] | ChronoStore | Blocks
#: What says how it should be; an object is one with ``model_dump()``.
Config: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Dumps

#: The model that needs no server.
_OFFLINE = "lexical"
#: What configurations of the system that this one follows may also hold. It is read over, and said so.
_NOT_USED = {
    "": "consolidation llm logging peer peers prompts rescore review substrate",
    "project": "agent_name created identity name",
    "memory": (
        "co_retrieval_edge_threshold co_retrieval_edge_weight co_retrieval_staging_max curate_interval_hours "
        "curate_reinforce_top_n edge_degree_cap edge_prune_threshold edge_reinforce_delta "
        "edge_score_threshold lambda_ceiling max_inbox_per_run near_dup_exact_threshold "
        "near_dup_near_threshold "
        "outcome_prior_strength outcome_reinforce_threshold penalize_threshold penalty_factor "
        "rescore_evidence_weight search_window_hours self_alignment_threshold vector_n_seeds_multiplier"
    ),
}


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Memory(_Section):
    top_k: int | None = Field(default=None, ge=1, le=MOST_RESULTS)
    inbox_threshold: int | None = Field(default=None, ge=1)
    prune_threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    exploration: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)


class _Embeddings(_Section):
    model: str | None = None
    base_url: str | None = None
    dimensions: int | None = Field(default=None, ge=1)
    timeout: float = Field(default=30.0, gt=0.0, allow_inf_nan=False)
    api_key_env: str | None = None

    def embedder(self) -> Embedder:
        """Return what it asks for; a server is not asked before there is something to embed."""
        if self.model is None and self.base_url is not None:
            raise ConfigError(
                "embeddings.base_url: a server needs the name of a model", recovery=_NAME_A_MODEL
            )
        if self.model is None or self.model == _OFFLINE:
            return LexicalEmbedder() if self.dimensions is None else LexicalEmbedder(self.dimensions)
        given = {"base_url": self.base_url, "key_variable": self.api_key_env}
        return EndpointEmbedder(
            self.model,
            timeout_seconds=self.timeout,
            dimensions=self.dimensions,
            **{name: value for name, value in given.items() if value is not None},
        )


_NAME_A_MODEL = "Give embeddings.model too, or leave both out to compare words."


class _Project(_Section):
    db: str | None = None


class _Whole(_Section):
    path: str | None = None
    project: _Project = _Project()
    memory: _Memory = _Memory()
    embeddings: _Embeddings = _Embeddings()


def configured(place: Place | Config | None, config: Config | None) -> tuple[Place, dict[str, Any]]:
    """Return where a memory is and its options; a configuration alone, as the first argument, says both."""
    if config is None and (alone := _alone(place)) is not None:
        place, config = None, alone
    settings, folder = _read(config)
    if "embedding" in settings:  # either name is usual
        settings["embeddings"] = settings.pop("embedding")
    unused = sorted(_read_over(settings))
    try:
        whole = _Whole.model_validate(settings)
    except ValidationError as fault:
        wrong = fault.errors()[0]
        where = ".".join(str(part) for part in wrong["loc"])
        if wrong["type"] == "extra_forbidden":  # not shown: it may be a key
            raise ConfigError(f"{where}: there is no such setting") from None
        raise ConfigError(f"{where}: {wrong['msg']}, and it is {wrong['input']!r}") from None
    if unused:
        names = ", ".join(unused)
        warnings.warn(f"settings that mean nothing here are not used: {names}", UserWarning, stacklevel=3)
    if place is None:
        own = whole.path or whole.project.db
        if own is None:
            raise ConfigError(
                "path: nothing says where the memory is", recovery="Give a folder first, or set path."
            )
        place = folder / own
    elif not isinstance(place, str | os.PathLike | ChronoStore | Blocks):
        raise ConfigError(f"place: a {type(place).__name__} is no folder", recovery="Give a folder first.")
    return place, {"embedder": whole.embeddings.embedder(), **whole.memory.model_dump()}


def _alone(given: Place | Config | None) -> Config | None:
    """Return what was given where the place stands if it is a configuration."""
    if isinstance(given, Mapping):
        return given
    if not isinstance(given, str | os.PathLike | ChronoStore | Blocks) and _dumps(given):
        return given
    if isinstance(given, str | os.PathLike) and (file := Path(given)).suffix in _READERS and file.is_file():
        return file
    return None


def _dumps(given: object) -> bool:
    # Not the class itself: nothing is set in it.
    return not isinstance(given, type) and callable(getattr(given, "model_dump", None))


def _read(config: Config | None) -> tuple[dict[str, Any], Path]:
    """Return what a configuration holds, and the folder that its paths start from."""
    if config is None:
        return {}, Path()
    if isinstance(config, BaseModel):
        return config.model_dump(exclude_unset=True), Path()
    if not isinstance(config, Mapping | str | os.PathLike) and _dumps(config):
        config = config.model_dump()
    if isinstance(config, Mapping):
        return dict(config), Path()
    if not isinstance(config, str | os.PathLike):
        raise ConfigError(
            f"config: a {type(config).__name__} is no configuration",
            recovery="Give a dict, or the path of a file.",
        )
    file = Path(config)
    reader = _READERS.get(file.suffix)
    if reader is None:
        raise ConfigError(
            f"config: {file.name} is neither .json nor .toml",
            recovery="Write it as JSON or TOML, or read it yourself and give the dict.",
        )
    try:
        settings = reader(read_config(file))
    except ConfigError:
        raise
    except (ValueError, RecursionError) as fault:
        raise ConfigError(
            f"config: {file.name} cannot be read: {fault}", recovery="Correct the file."
        ) from None
    if not isinstance(settings, dict):
        raise ConfigError(f"config: {file.name} holds no sections", recovery="Write an object with sections.")
    return settings, file.parent


def _read_over(settings: dict[str, Any]) -> list[str]:
    """Take out of a configuration what only other systems know, and return its names."""
    found = []
    for section, names in _NOT_USED.items():
        within = settings.get(section, {}) if section else settings
        if not isinstance(within, Mapping):
            continue
        unused = [name for name in names.split() if name in within]
        found += [f"{section}.{name}" if section else name for name in unused]
        if section and unused:
            settings[section] = {name: value for name, value in within.items() if name not in unused}
        for name in [] if section else unused:
            del settings[name]
    return found


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        return tomllib.loads(text)
    raise ConfigError("config: TOML needs Python 3.11", recovery="Write it as JSON.")


_READERS: dict[str, Callable[[str], Any]] = {".json": json.loads, ".toml": _toml}
