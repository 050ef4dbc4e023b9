"""Reads the archives that a log names, and checks that they lead to what it starts from. For `verify_log.py`.

Sections 8 and 16 of docs/format.md. The way back is found first, from sentinel to sentinel; then the retired
logs are read from the oldest on: each is judged, its trail is followed, and what it adds up to is held
against the base that came behind it.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, BinaryIO

import erased_lines
from erased_lines import ERASED, Bound, Trail, is_count, is_digest, replacements, sentinel_data
from retired_log import Records, segment_of

ARCHIVE = re.compile(r"archive/[0-9A-Za-z_-][0-9A-Za-z._-]*")


def read(folder: Any, path: str, reader: Any, law: Any) -> Any:
    """What `reader` makes of a file, unpacked if it is packed; None if nothing here can unpack it."""
    if path.removesuffix(ERASED).endswith(".zst"):
        packed = law.PACKED_LOG
        return packed.read(folder.path / path, reader) if packed else None
    with folder.open(path) as stream:
        return reader(stream)


def _missing(law: Any) -> str:
    return law.PACKED_LOG.MISSING if law.PACKED_LOG else "packed_log.py is not beside verify_log.py"


def digest(stream: BinaryIO) -> str:
    """The SHA-256 of what a file holds."""
    found = hashlib.sha256()
    while chunk := stream.read(1 << 20):
        found.update(chunk)
    return found.hexdigest()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as stream:
        return digest(stream)


class Hop:
    """One sentinel, the log that begins with it, and the archive that it leads back to."""

    def __init__(self, event: dict[str, Any] | None, path: str, at: tuple[int, int]) -> None:
        self.event, self.path, self.at = event, path, at
        self.data = sentinel_data(event)
        self.base = self.named_base = self.data.get("base_sha256")
        self.bound = 0  # redacted lines that the log that begins here must have
        self.settled = -1
        self.trail: Trail | None = None
        self.trail_from: int | None = None
        self.segment: Any = None

    def own_trail(self) -> tuple[str, int] | None:
        value: Any = self.data.get("trail")
        start: Any = self.data.get("trail_from")
        return (value, start) if is_digest(value) and is_count(start) else None


class Past:
    """The way back from one sentinel, and what is found on it."""

    def __init__(self, folder: Any, log: Any, law: Any, read_state: Any) -> None:
        self.folder, self.log, self.law, self.read_state = folder, log, law, read_state
        self.archives: dict[str, tuple[str, int]] = {}
        self.bases: dict[str, str | None] = {}
        self.hops: list[Hop] = []
        self.end: tuple[str, str, Any] | None = None  # how the way ended: what to do, the path and the reason
        self.olds: dict[str, None] = {}

    def resolved(self, hop: Hop) -> tuple[str | None, Any, int]:
        """The file that a sentinel names as its archive, its digest, and how many lines are redacted."""
        data, bound = hop.data, erased_lines.bound_by(hop.data)
        name, digest = data.get("archive"), data.get("archive_sha256")
        if name is None:
            return None, digest, bound
        if not isinstance(name, str) or not ARCHIVE.fullmatch(name) or name.endswith(ERASED):
            return "", digest, bound
        if (now := self.archives.get(digest) if isinstance(digest, str) else None) is not None:
            ends = [data.get(one) for one in ("first_seq", "last_seq")]
            packed = f"archive/{ends[0]}-{ends[1]}-{now[0][:16]}.wal.zst{ERASED}"
            return packed if all(map(is_count, ends)) else "", *now
        if bound and not name.endswith(".zst"):
            return "", digest, bound
        return name + ERASED * bool(bound), digest, bound

    def replace(self, data: dict[str, Any]) -> None:
        """Only an erasure further on replaces a file."""
        for one in replacements(data) or []:
            self.olds[one["old"]] = None
            if "erased" in one:
                self.archives[one["old"]] = self.archives.get(one["new"], (one["new"], one["erased"]))
            else:
                self.bases[one["old"]] = self.bases.get(one["new"], one["new"]) if one["new"] else None

    def find(self, first: dict[str, Any], at: tuple[int, int], live: Any) -> None:
        """Go back from sentinel to sentinel, as far as archives have the digests that are named."""
        hop = Hop(first, self.law.LOG, at)
        hop.segment = live
        self.hops.append(hop)
        while hop.data:
            path, digest, bound = self.resolved(hop)
            self.replace(hop.data)
            if path is None or (path and not self.folder.exists(path)):
                self.end = ("note", "", "")
                return
            try:
                if not path or self.folder.digest(path) != digest:
                    raise ValueError("not the segment that was retired")
                event, place = self._first_event(path, bound)
            except FileNotFoundError:
                self.end = ("note", "", "")
                return
            except PermissionError as error:
                self.end = ("unseen", path, f"history unavailable: {error}")
                return
            except (ValueError, OSError) as error:
                self.end = ("altered", path or "archive", str(error))
                return
            if event is None:
                self.end = ("unseen", path, f"its digest is right, but {_missing(self.law)}")
                return
            if path in (one.path for one in self.hops):
                self.end = ("altered", path, "it leads in a circle")
                return
            hop = Hop(event or None, path, place)
            hop.bound = bound
            hop.base = self.bases.get(str(hop.base), hop.base)
            self.hops.append(hop)

    def _first_event(self, path: str, bound: int) -> tuple[dict[str, Any] | None, tuple[int, int]]:
        def first(stream: BinaryIO) -> tuple[dict[str, Any], tuple[int, int]]:
            for line in self.law.split(stream):
                if bound and line.complete and erased_lines.redacted(line.raw):
                    return {}, line[:2]
                if line.complete and not (found := self.law.read_event(line.raw))[1]:
                    return found[0], line[:2]
            return {}, (0, 0)

        return self._read(path, first) or (None, (0, 0))

    def _read(self, path: str, reader: Any) -> Any:
        return read(self.folder, path, reader, self.law)

    def _name(self, hop: Hop) -> str:
        """The file of the base that a retired log starts from: packed, if there is no other."""
        name = f"base/{hop.base}.json"
        is_packed = not self.folder.exists(name) and self.folder.exists(f"{name}.zst")
        return f"{name}.zst" if is_packed else name

    def judge(self) -> None:
        """Read the archives from the oldest on, then say what is wrong from the newest back."""
        self._ask_for_trails()
        differing, state, older = set[int](), None, None
        kind = segment_of(self.law.Log)
        for number in range(len(self.hops) - 1, 0, -1):
            hop = self.hops[number]
            try:
                state = self._start(hop, state)
                self._begin_trail(hop, older)
                hop.segment = self._read(
                    hop.path, lambda stream, hop=hop, state=state: kind(stream, hop, state, self.law)
                )
            except FileNotFoundError:
                # Another process dropped it meanwhile, and with it all before.
                del self.hops[number:]
                self.end, state, older = ("note", "", ""), None, None
                differing = {one for one in differing if one < number}
                continue
            except (ValueError, OSError) as error:
                hop.segment = str(error)
            if self._wrong_with(number):
                state = older = None
                continue
            older = hop
            if state is not None and (found := self._held_against(self.hops[number - 1], state)):
                if found == "differs":
                    differing.add(number - 1)
                state = None
        self._report(differing)

    def _ask_for_trails(self) -> None:
        """From where on the trail of each log is asked for, by the sentinel behind it or a later one."""
        wanted: int | None = None
        for number, hop in enumerate(self.hops):
            if number:
                hop.trail_from = (hop.own_trail() or (None, wanted))[1]
            first = hop.event["seq"] if hop.event else None
            own = hop.own_trail()
            wanted = own[1] if own else (wanted if wanted != first else None)

    def _begin_trail(self, hop: Hop, older: Hop | None) -> None:
        own, first = hop.own_trail(), self._first_seq(hop)
        if own:
            hop.trail = Trail(bytes.fromhex(own[0]))
        elif hop.trail_from is not None and hop.trail_from == first:
            hop.trail = Trail(bytes(32))
        elif hop.trail_from is not None and older and older.trail and older.trail_from == hop.trail_from:
            hop.trail = Trail(bytes.fromhex(older.trail.value()))

    def _first_seq(self, hop: Hop) -> int | None:
        if hop.event:
            return int(hop.event["seq"])

        def first(stream: BinaryIO) -> int | None:
            for line in self.law.split(stream):
                if found := erased_lines.redacted(line.raw):
                    return found[0]
            return None

        return self._read(hop.path, first) if hop.bound else None

    def _start(self, hop: Hop, state: Records | None) -> Records | None:
        """What a retired log starts from; None if that is not known."""
        if hop.event and hop.event["op"] == "compact" and not hop.data:
            reader = segment_of(self.law.Log)
            adopt = self._read(hop.path, lambda stream: reader(stream, hop, None, self.law)).known.adopt
            if adopt is None:
                return None
            hop.named_base, hop.settled = adopt["record"]["base_sha256"], adopt["record"]["seq"]
            hop.base = self.bases.get(hop.named_base, hop.named_base)
        elif not hop.data:
            return Records()
        if state is not None or not is_digest(hop.base):
            return state
        base = self._state(hop)
        return Records(base) if base else None

    def _state(self, hop: Hop) -> Any:
        name = self._name(hop)
        try:
            is_right = self.folder.exists(name) and self._read(name, digest) == hop.base
            return self.read_state(self.folder, name, self.law) if is_right else None
        except (OSError, ValueError):
            return None

    def _is_compared(self, hop: Hop) -> bool:
        """Whether a base is unproven: made by a repair or another tool, or without a trail."""
        is_ours = any(key in hop.data for key in ("trail", "trail_from", "erased", "replaced"))
        return is_ours and not hop.data.get("repaired")

    def _held_against(self, hop: Hop, state: Records) -> str:
        """Whether the base that a log starts from is what came before it adds up to: nothing if it is."""
        if hop.data.get("repaired"):
            return "not compared"
        base = self._state(hop) if is_digest(hop.base) else None
        if base is None:
            return ""
        if not self._is_compared(hop):
            return "not compared"
        if state.acted:
            self.log.notes.append(f"acts not derived: blocks of base/{hop.base}.json not compared")
        is_same = Records(base).spelled(self.law, not state.acted) == state.spelled(self.law, not state.acted)
        if is_same and state.acted:
            state.known, state.acted = Records(base).known, False
        return "" if is_same else "differs"

    def _wrong_with(self, number: int) -> tuple[str, tuple[int, int]] | None:
        """Why an archive is not the one that was retired, and where that shows."""
        hop, after = self.hops[number], self.hops[number - 1]
        segment = hop.segment
        if isinstance(segment, str):
            return segment, (0, 0)
        if segment.damage:
            first = min(segment.damage, key=lambda found: found["offset"])
            return "its chain does not lead to previous_head", (first["offset"], first["line"])
        if segment.known.head != after.data.get("previous_head"):
            return "its chain does not lead to previous_head", (0, 0)
        if len(segment.redacted) != hop.bound:
            at = segment.redacted[0][:2] if segment.redacted else (0, 0)
            return "other lines of it are erased than the log says", at
        if at := segment.stray():
            return "a redacted line has the seq of another place", at
        return None

    def returned(self, bases: list[str], archives: list[str]) -> list[str]:
        """Files that an erasure took away, and that are back, of those with names of ours."""
        short = {old[:16] for old in self.olds}
        found = [f"base/{name}" for name in bases if name[:64] in self.olds]
        found += [f"archive/{name}" for name in archives if name.split("-")[2][:16] in short]
        on_the_way = {hop.path for hop in self.hops}
        on_the_way |= {f"base/{hop.base}.json{end}" for hop in self.hops for end in ("", ".zst")}
        return [name for name in found if name not in on_the_way]

    def _report(self, differing: set[int]) -> None:
        is_all_known = self.end is None
        before = [Bound() for _ in self.hops]
        for number in range(len(self.hops) - 1, 0, -1):
            before[number - 1].archives |= before[number].archives
            before[number - 1].bases |= before[number].bases
            hop = self.hops[number]
            before[number - 1].name(hop.data)
            if isinstance(hop.named_base, str):
                before[number - 1].bases.add(hop.named_base)
        for number, hop in enumerate(self.hops):
            if number and (wrong := self._wrong_with(number)):
                self.log.report("archive-altered", wrong[0], None, hop.path, wrong[1])
                return
            if number:
                is_added_up = number + 1 < len(self.hops) and not self._wrong_with(number + 1)
                self._report_segment(hop, is_added_up and self._is_compared(hop))
            self._report_erasure(hop, before[number], is_all_known)
            self._report_trail(number)
            if number in differing:
                reason = "not what the history before it adds up to"
                self.log.report("base-differs", reason, None, self._name(hop))
        what, path, reason = self.end or ("", "", "")
        if what == "note":
            first, pruned = self.hops[-1].event["seq"], self._pruned()  # type: ignore[index]
            if not any(record["data"]["last_seq"] == first - 1 for record in pruned):
                self.log.notes.append(f"history unavailable: before seq {first}")
            self.log.notes += [f"pruned: {record['label']!r}, {record['data']}" for record in pruned]
        elif what == "unseen":
            self.folder.cannot_look(path, reason)
        elif what:
            self.log.report("archive-altered", reason, None, path)

    def _pruned(self) -> list[Any]:
        """The records that say which archives were removed on purpose."""
        base: Any = self._state(self.hops[0]) or {"records": []}
        found = [one for one in base["records"] if str(one.get("id")).startswith("pruned:")]
        self.folder.log.seek(0)
        for line in self.law.split(self.folder.log):
            if line.complete and line.raw and b'"prune"' in line.raw:
                event, wrong, _ = self.law.read_event(line.raw)
                found += [event["record"]] if not wrong and erased_lines.is_pruning(event) else []
        return [one for one in found if isinstance(one.get("data"), dict) and "last_seq" in one["data"]]

    def _report_segment(self, hop: Hop, is_added_up: bool) -> None:
        """A base that the history before adds up to is not missed; a different one is damage."""
        sha256 = hop.base
        if hop.segment.redacted:
            count = len(hop.segment.redacted)
            attested = "" if hop.segment.is_steady else "; their seqs are attested"
            self.log.notes.append(f"erased: {count} lines of {hop.path}{attested}")
        if not is_digest(sha256):
            return
        name = self._name(hop)
        try:
            if not self.folder.exists(name):
                self.log.notes += [f"history unavailable: {name} is not there"] * (not is_added_up)
            elif (found := self._read(name, digest)) is None:
                self.folder.cannot_look(name, _missing(self.law))
            elif found != sha256:
                self.log.report("base-altered", "not the base an archived segment started from", None, name)
            elif sha256 != hop.named_base:
                self.log.notes.append(f"attested: {name} was rewritten by an erasure")
        except FileNotFoundError:
            pass  # another process packed or dropped it meanwhile
        except ValueError as error:
            self.log.report("base-altered", str(error), None, name)
        except PermissionError as error:
            self.folder.cannot_look(name, str(error))

    def _report_erasure(self, hop: Hop, before: Bound, is_all_known: bool) -> None:
        """An erasure is recorded by a sentinel and the event behind it, both or neither."""
        found = hop.segment.erasures()
        is_told = "erased" in hop.data or "replaced" in hop.data
        bound = found[0][1] if is_told and found and found[0][0] == 1 else None
        if is_told and (reason := erased_lines.unbound(hop.data, bound, before, is_all_known)):
            self.log.report("erase-unbound", reason, hop.event and hop.event["seq"], hop.path, hop.at)
        for _, event, at in found[1 if bound else 0 :]:
            self.log.report("erase-unbound", "no sentinel tells of it", event["seq"], hop.path, at)
        if bound:
            data, reason = bound["record"]["data"], bound["record"]["label"]
            self.log.notes.append(f"erased at seq {bound['seq']}, {bound['ts']}: {reason!r}, {data}")

    def _report_trail(self, number: int) -> None:
        hop = self.hops[number]
        if "trail" not in hop.data and "trail_from" not in hop.data:
            return
        own, seq = hop.own_trail(), hop.event and hop.event["seq"]
        older = self.hops[number + 1] if number + 1 < len(self.hops) else None
        if own is None:
            self.log.report("trail-broken", "it is no trail", seq, hop.path, hop.at)
        elif older is None:
            self.log.notes.append(f"trail not compared: nothing is left of what came before seq {seq}")
        elif self._wrong_with(number + 1):
            return
        elif self._has_start(number + 1, own[1]) is False:
            self.log.report("trail-broken", "it begins elsewhere", seq, hop.path, hop.at)
        elif older.trail is None or older.trail_from != own[1]:
            self.log.notes.append(f"trail not compared: its start, seq {own[1]}, is not there")
        elif older.trail.value() != own[0]:
            self.log.report("trail-broken", "not the trail of the log before", seq, hop.path, hop.at)

    def _has_start(self, number: int, start: int) -> bool | None:
        """Whether a trail that ends with a log can begin at a seq; None if that is unknown."""
        for hop in self.hops[number:]:
            if own := hop.own_trail():
                return own[1] == start
            if self._first_seq(hop) == start:
                return True
        return False if self.end is None else None
