"""Finds the embedder that a name on a command line means.

Whoever types a command, or writes the settings of a client, may name anything that Python can import. So a
name is taken from there alone: never from a store, a file of settings or a model.
"""

from __future__ import annotations

import importlib
from typing import Any

from chronomemory.embedders.protocol import Embedder, check_embedder
from chronomemory.errors import InvalidArgument

__all__ = ["named_embedder"]


def named_embedder(name: str, model: str | None = None) -> Embedder:
    """Return the embedder that ``module:name`` stands for, or what it makes when it is called.

    With a ``model`` it is called with that; without one, only what is no embedder yet is called.

    >>> named_embedder("chronomemory.embedders:LexicalEmbedder").model_name
    'lexical-384-v1'
    """
    found = _found(name)
    is_ready = not isinstance(found, type) and hasattr(found, "embed_batch")
    if is_ready and model is not None:
        raise _refused(f"{name} is an embedder already, and takes no model", "Leave the model out.")
    if is_ready:
        return check_embedder(found)
    if not callable(found):
        raise _refused(f"{name} is no embedder and makes none", _NAME_ONE)
    try:
        made = found() if model is None else found(model)
    except (TypeError, ValueError, OSError, ImportError) as fault:
        raise _refused(f"{name} made no embedder: {fault}", "Check what it needs, and the model.") from fault
    return check_embedder(made)


_NAME_ONE = "Name a class, a function without arguments, or an embedder, as in package.module:name."


def _found(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise _refused(f"{name!r} names no embedder", _NAME_ONE)
    try:
        return getattr(importlib.import_module(module), attribute)
    except ImportError as fault:
        raise _refused(
            f"{module} cannot be imported: {fault}",
            "Install it where this program runs, or name its folder in PYTHONPATH.",
        ) from fault
    except AttributeError:
        raise _refused(f"{module} has no {attribute}", _NAME_ONE) from None


def _refused(why: str, recovery: str) -> InvalidArgument:
    return InvalidArgument(f"embedder: {why}", field="embedder", recovery=recovery)
