"""Both verifiers judge erasures alike, honest ones and those that are not."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from chronomemory import _core
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from verdicts import CORPUS, essence, verify_log

sys.path.insert(0, str(CORPUS))
from craft import Chain
from erased_store import ErasedStore, redacted
from shares import share

NAMES = ["x", "y", "z"]
OTHER = "ab" * 32
#: What may stand in the place of a field of a sentinel or of an event.
ODD = [0, 1, 2, -1, "1", None, [], {}, OTHER, [OTHER], True, 2**63]


def spoiled(draw: st.DrawFn, lines: list[bytes]) -> list[bytes]:
    """Lines of an archive, changed by somebody who can compute its digest anew."""
    lines = [*lines]
    at = draw(st.integers(0, len(lines) - 1))
    action = draw(st.sampled_from(["redact", "hash", "seq", "drop", "twice", "swap", "space", "garbage"]))
    if action == "redact" and b'"erased"' not in lines[at][:12]:
        lines[at] = redacted(lines[at])
    elif action == "hash":
        lines[at] = lines[at].replace(json.loads(lines[at])["hash"].encode(), OTHER.encode(), 1)
    elif action == "seq":
        lines[at] = lines[at].replace(b'{"erased":', b'{"erased":1', 1)
    elif action == "drop" and len(lines) > 1:
        del lines[at]
    elif action == "twice":
        lines.insert(at, lines[at])
    elif action == "swap":
        lines[0], lines[at] = lines[at], lines[0]
    elif action == "space":
        lines[at] = lines[at].replace(b",", b" ,", 1)
    elif action == "garbage":
        lines[at] = b"?\n"
    return lines


def odd_list(draw: st.DrawFn, listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a sentinel says of replaced files, not quite as it should."""
    listed = [dict(one) for one in listed]
    if not listed or draw(st.booleans()):
        return [*listed, {"old": OTHER, "new": draw(st.sampled_from([None, OTHER, "cd" * 32]))}]
    at = draw(st.integers(0, len(listed) - 1))
    action = draw(st.sampled_from(["drop", "twice", "erased", "new", "turn"]))
    if action == "drop":
        del listed[at]
    elif action == "twice":
        listed.append(listed[at])
    elif action == "erased":
        listed[at]["erased"] = draw(st.sampled_from(ODD))
    elif action == "new":
        listed[at]["new"] = draw(st.sampled_from([*ODD, listed[at]["old"]]))
    else:
        listed.reverse()
    return listed


@st.composite
def stores(draw: st.DrawFn) -> tuple[ErasedStore, bool]:
    """A store with compactions and erasures, and whether all of them are as they should be."""
    is_honest = True
    store = ErasedStore(Chain(), with_trail=draw(st.booleans()))
    store.chain.add(record_id="x", record={"id": "x"})
    for _ in range(draw(st.integers(1, 6))):
        action = draw(
            st.sampled_from(["write", "write", "batch", "compact", "erase", "erase", "odd", "trail"])
        )
        if action == "write":
            name = draw(st.sampled_from(NAMES))
            record: dict[str, Any] = {"id": name, "n": draw(st.integers(0, 3))}
            record |= {"~": "0123456789abcde" + draw(st.sampled_from("fg"))} if draw(st.booleans()) else {}
            store.chain.add(record_id=name, record=record)
        elif action == "batch":
            store.chain.begin(2)
            for name in NAMES[:2]:
                store.chain.add(record_id=name, record={"id": name})
        elif action == "compact":
            store.compact(keep=draw(st.integers(0, 3)) > 0)
        elif action == "trail":
            store.with_trail = not store.with_trail
        elif action == "erase":
            history = draw(st.sampled_from(["redacted", "redacted", "redacted", "dropped"]))
            store.erase(*draw(st.sets(st.sampled_from(NAMES), min_size=1)), history=history)
        else:
            is_honest, more = False, dict[str, Any]()
            what = draw(st.sampled_from(["lines", "list", "sentinel", "event", "records", "alone"]))
            if what == "lines":
                more["spoil"] = lambda lines: spoiled(draw, lines)
            elif what == "list":
                more["listed"] = lambda listed: odd_list(draw, listed)
            elif what == "sentinel":
                field = draw(
                    st.sampled_from(["erased", "replaced", "repaired", "previous_head", "trail_from"])
                )
                more[field] = draw(st.sampled_from(ODD))
            elif what == "event":
                field = draw(st.sampled_from(["lines", "history", "removed", "first_seq", "unsalted"]))
                more["event"] = {field: draw(st.sampled_from(ODD))}
            elif what == "records":
                more["records"] = lambda known: dict(list(known.items())[1:])
            else:
                more["follows"] = False
            store.erase(draw(st.sampled_from(NAMES)), **more)
    return store, is_honest


@settings(
    deadline=None,
    max_examples=share(60, 1500),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(stores(), st.data())
def test_verifiers_agree_on_erasures(made: tuple[ErasedStore, bool], data: st.DataObject) -> None:
    store, is_honest = made
    with tempfile.TemporaryDirectory() as folder:
        inner = Path(folder) / ".chronomemory"
        files = {"events.wal": b"".join(store.chain.lines), **store.files}
        names = sorted(store.files)
        if names and data.draw(st.integers(0, 4)) == 0:
            del files[data.draw(st.sampled_from(names))]
            is_honest = False
        for name, content in files.items():
            (inner / name).parent.mkdir(parents=True, exist_ok=True)
            (inner / name).write_bytes(content)
        found = essence(_core.verify_path(str(inner)))
        assert found == essence(verify_log.verify_folder(inner))
        assert found["valid"] or not is_honest, found["damage"]
        assert found["returned"] == [] or not is_honest
        shutil.rmtree(inner)
