"""Erases the past of something whose present stays, and one entry of a page that stays."""

from __future__ import annotations

import json
from collections.abc import Callable

from chronomemory import ChronoStore
from faces import SHELVES
from victims import Victims


class Pasts(Victims):
    """The two stores, in the first of which a past goes, now and then, before the rest."""

    def restated(self) -> None:
        """Erase the past of something that a face wrote, whose present stays until it goes too."""
        known = [one for face in ("blocks", "episodes", "graph") for one in self.going_of(face)]
        known = [one for one in known if self._is_active(one.name)]
        if not known:
            return
        one = self.dice.choice(known)
        self.before, self.scope = self.everything(), {}
        told = self.a.erase(ids=[one.name], again=[one.name], reason="its past was asked for")
        self.did[-1] += f" {one.face}: {told.seq}"
        assert told.seq is not None
        self.entered(told.seq)
        now = self.a.everyone().get(one.name)
        if now is None or now.to_dict() != self.before["records"][one.name]:
            self.wrong.append(f"{one.name} was said again as {now and now.to_dict()}")
        past = [event.seq for event in self.a.everyone().history(one.name)]
        if past and past[0] <= told.seq:
            self.wrong.append(f"{one.name} has a past at {past}")
        if one.face == "episodes" and now is not None:
            said = json.dumps(now.to_dict())
            self.gone += [word for word in one.secrets if word not in said]
            one.secrets = [word for word in one.secrets if word in said]
        self.wrong += self.as_before(self.before, [one.name.split(":")[-1]], dropped=False, went=False)
        self.follow_files()

    def _is_active(self, name: str) -> bool:
        record = self.a.everyone().get(name)
        return record is not None and record.status == "active"

    def struck_out(self) -> None:
        """Take an entry out of a page by hand, then erase it, and what the page was before."""
        known = [one for one in self.going_of("pages") if self._is_active(one.name)]
        if not known:
            return
        page = self.dice.choice(known)
        at = self.dice.random()
        shelf = next(shelf for shelf, owner in SHELVES.items() if owner == page.owner)
        name = page.name.split(":")[2]

        def cut(store: ChronoStore) -> tuple[str, str, str] | None:
            with self.pages(store, shelf) as pages:
                text = pages.text(name)
                alone = [one for one in pages.read(name) if text.count(one.content.split()[0]) == 1]
                if not alone:
                    return None
                entry = alone[int(at * len(alone))]
                begin = text.index("## [", text.rindex("\n## [", 0, text.index(entry.content)))
                end = text.find("\n## [", text.index(entry.content))
                text = text[:begin] + ("" if end < 0 else text[end + 1 :])
                (pages.folder / f"{name}.md").write_text(text, encoding="utf-8")
                pages.sync()
                return entry.id, entry.content.split()[0], pages.text(name)

        done = self.only_first(cut)
        if done is None:
            return
        entry_id, word, text = done
        entry = page.name.replace("page:", "entry:", 1) + f":{entry_id}"
        self.before, self.scope = self.everything(), {}
        told = self.a.erase(ids=[entry, page.name], again=[page.name], reason="a line was asked for")
        assert told.seq is not None
        self.did[-1] += f": {told.seq}"
        self.entered(told.seq)
        self.gone.append(word)
        page.secrets = [one for one in page.secrets if one != word]
        self.wrong += self.as_before(self.before, [name], dropped=False, went=False, but={entry})
        with self.same(), self.pages(self.a, shelf) as pages:
            if pages.text(name) != text:
                self.wrong.append(f"{name} is {pages.text(name)!r} instead of {text!r}")
        self.follow_files()

    def entered(self, seq: int) -> None:
        """Note an erasure that says something again, and let the twin follow."""
        self.erasures += 1
        self._follow(seq, "redact")
        self.unsettled |= {*range(seq + 1, self.a.wal_seq())}

    def verbs(self) -> list[tuple[Callable[[], None], int]]:
        return [*super().verbs(), (self.restated, 3), (self.struck_out, 4)]
