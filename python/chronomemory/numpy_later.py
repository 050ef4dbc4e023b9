"""NumPy, imported when the first of its names is used: reading a record by its id does not wait for it."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, ForwardRef, TypeAlias

__all__ = ["Floats", "np", "npt"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float32]
else:
    np = npt = sys.modules[__name__]
    # Evaluated by typing.get_type_hints, in this module.
    Floats = ForwardRef("npt.NDArray[np.float32]", module=__name__)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # the import system asks every module for such names
        raise AttributeError(name)
    home = "numpy.typing" if name in ("ArrayLike", "NDArray") else "numpy"
    found = getattr(importlib.import_module(home), name)
    globals()[name] = found
    return found
