"""A folder of pages, for tasks: every verb is awaited, and runs in a thread of the loop."""

from __future__ import annotations

from chronomemory.face.awaited import Awaited, awaited_verb
from chronomemory.pages.pages import Pages

__all__ = ["AsyncPages"]


class AsyncPages(Awaited[Pages]):
    """The verbs of ``Pages``, each awaited: ``AsyncPages(Pages(folder))``."""

    create = awaited_verb(Pages.create)
    append = awaited_verb(Pages.append)
    supersede = awaited_verb(Pages.supersede)
    flag_compact = awaited_verb(Pages.flag_compact)
    set_status = awaited_verb(Pages.set_status)
    compact = awaited_verb(Pages.compact)
    compact_flagged = awaited_verb(Pages.compact_flagged)
    list = awaited_verb(Pages.list)
    info = awaited_verb(Pages.info)
    text = awaited_verb(Pages.text)
    read = awaited_verb(Pages.read)
    chain = awaited_verb(Pages.chain)
    recent = awaited_verb(Pages.recent)
    tagged = awaited_verb(Pages.tagged)
    search = awaited_verb(Pages.search)
    links = awaited_verb(Pages.links)
    picture = awaited_verb(Pages.picture)
    sync = awaited_verb(Pages.sync)
    rebuild = awaited_verb(Pages.rebuild)
    rebuild_index = awaited_verb(Pages.rebuild_index)
    clean = awaited_verb(Pages.clean)
    close = awaited_verb(Pages.close)

    async def __aenter__(self) -> AsyncPages:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
