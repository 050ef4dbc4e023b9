"""What lies under an id of this face and no verb can use, and why.

The engine knows the shapes. What a frame or a setting says inside its texts is known here, where it is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from chronomemory.blocks.errors import FrameError
from chronomemory.blocks.ids import CONFIG, FRAME, called, config_key, frame_key
from chronomemory.blocks.recall.frames import frame_of
from chronomemory.blocks.storage.config import check_setting
from chronomemory.errors import InvalidArgument, InvalidRecord
from chronomemory.types import HasEngine

__all__ = ["check_saying", "unusable"]

#: The texts of a frame that hold JSON; one more may be missing.
_FRAME_TEXTS = ("weights_json", "filters_json", "guarantees_json")


def unusable(store: HasEngine) -> list[tuple[str, str, str]]:
    """Return every record of the face that is left out of all answers: id, field, reason."""
    found = store.engine.block_misfits()
    for kind in (CONFIG, FRAME):
        for record in store.engine.block_records(kind, None, None):
            try:
                check_saying(record.id, record.data)
            except InvalidArgument as error:
                reason = re.sub(f"^{re.escape(str(error.field))}:? ", "", str(error))
                found.append((record.id, error.field or "data", reason))
    return found


def check_saying(name: str, data: Mapping[str, Any]) -> None:
    """Refuse a frame or a setting of a sound shape that makes no sense; of shapes the engine knows."""
    if name.startswith(config_key("")) and isinstance(data.get("value"), str):
        check_setting(called(name, data), data["value"])
    if name.startswith(frame_key("")):
        texts = [data.get("cache_json", ""), *(data.get(part) for part in _FRAME_TEXTS)]
        if not all(isinstance(text, str) for text in texts):
            return
        try:
            frame_of(called(name, data), {"token_budget": 0, "template": "", **data})
        except (FrameError, ValidationError) as error:
            reason = " ".join(str(error).split())
            raise InvalidRecord(
                f"weights_json: {name!r} is no frame: {reason}", field="weights_json"
            ) from None
