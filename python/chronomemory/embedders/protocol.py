"""The protocols of embedders, and the checks that something keeps to one."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

from chronomemory.errors import InvalidArgument, InvalidRecord
from chronomemory.numpy_later import Floats, np

Vector: TypeAlias = Floats
Matrix: TypeAlias = Floats


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of one dimension; another model has another name."""

    @property
    def model_name(self) -> str: ...

    def embed(self, text: str) -> Vector: ...

    def embed_batch(self, texts: Sequence[str]) -> Matrix: ...


@runtime_checkable
class TokenEmbedder(Protocol):
    """Turns texts into a vector for each of their tokens; questions may be read differently."""

    @property
    def model_name(self) -> str: ...

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]: ...

    def embed_query_tokens(self, text: str) -> Matrix: ...


def offers_tokens(embedder: object) -> TypeGuard[TokenEmbedder]:
    """Say whether an embedder is a TokenEmbedder; every question asks it, and ``isinstance`` takes long."""
    return hasattr(embedder, "embed_tokens") and hasattr(embedder, "embed_query_tokens")


def check_embedder(given: Embedder) -> Embedder:
    """Take an embedder, or say what it lacks."""
    lacking = [name for name in ("model_name", "embed", "embed_batch") if not hasattr(given, name)]
    if lacking:
        raise InvalidArgument(
            f"embedder: a {type(given).__name__} has no {' and no '.join(lacking)}",
            field="embedder",
            recovery="Wrap a function in CallableEmbedder(model_name, function), or take an adapter.",
        )
    return given


#: The relevance floor for embedders that state none; cosines of unrelated texts differ between models.
_USUAL_FLOOR = 0.334


def usual_floor(embedder: Embedder) -> float:
    """Return how similar a text must be to a question to be relevant, as the embedder states."""
    return float(getattr(embedder, "min_similarity", _USUAL_FLOOR))


def as_matrix(rows: object, texts: int) -> Matrix:
    """Return what an embedder gave as a matrix with a row for each text, or say what is wrong with it."""
    try:
        given = np.asarray(rows)
    except ValueError:  # rows of different lengths
        raise _refused("rows that make no matrix") from None
    if given.ndim != 2 or given.shape[0] != texts or (texts and not given.shape[1]):
        raise _refused(f"an array of shape {given.shape} for {texts} texts")
    if given.dtype.kind not in "fiu":
        raise _refused(f"{given.dtype} instead of numbers")
    if given.dtype == np.float32:
        matrix = np.ascontiguousarray(given)
    else:
        with np.errstate(over="ignore"):  # values too large for float32 are refused below
            matrix = np.ascontiguousarray(given, dtype=np.float32)
    if not np.isfinite(matrix).all():
        raise _refused("a vector with a component that is not finite")
    return matrix


def as_tokens(arrays: object, texts: int) -> list[Matrix]:
    """Return what an embedder gave as a matrix for each text, with a row for each of its tokens."""
    given = list(arrays) if isinstance(arrays, Iterable) else []
    if len(given) != texts:
        raise _refused(f"{len(given)} arrays for {texts} texts")
    return [as_matrix(rows, len(rows)) for rows in given]


def _refused(given: str) -> InvalidRecord:
    return InvalidRecord(f"an embedder gave {given}", field="embedding")


def named_embedder(name: str, model: str | None = None) -> Embedder:
    """Return the embedder that ``module:name`` stands for, or what it makes when it is called.

    With a ``model`` it is called with that; without one, only what is no embedder yet is called.

    >>> named_embedder("chronomemory.embedders:LexicalEmbedder").model_name
    'lexical-384-v1'
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise _unnamed(f"{name!r} names no embedder", _NAME_ONE)
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
    except ImportError as fault:
        raise _unnamed(
            f"{module} cannot be imported: {fault}",
            "Install it where this program runs, or name its folder in PYTHONPATH.",
        ) from fault
    except AttributeError:
        raise _unnamed(f"{module} has no {attribute}", _NAME_ONE) from None
    is_ready = not isinstance(found, type) and hasattr(found, "embed_batch")
    if is_ready and model is not None:
        raise _unnamed(f"{name} is an embedder already, and takes no model", "Leave the model out.")
    if is_ready:
        return check_embedder(found)
    if not callable(found):
        raise _unnamed(f"{name} is no embedder and makes none", _NAME_ONE)
    try:
        made = found() if model is None else found(model)
    except (TypeError, ValueError, OSError, ImportError) as fault:
        raise _unnamed(f"{name} made no embedder: {fault}", "Check what it needs, and the model.") from fault
    return check_embedder(made)


_NAME_ONE = "Name a class, a function without arguments, or an embedder, as in package.module:name."


def _unnamed(why: str, recovery: str) -> InvalidArgument:
    return InvalidArgument(f"embedder: {why}", field="embedder", recovery=recovery)
