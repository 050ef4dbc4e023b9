"""Notifies subscribed clients of changes by this server and, by polling the log, by other processes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
from mcp.server import MCPServer, ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated, ServerEvent
from mcp.types import EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

from chronomemory.errors import ChronoError
from chronomemory.mcp.served_store import ServedStore
from chronomemory.mcp.toolbox import MEMORY_URI, PAGE_URI

LOOK_SECONDS = 1.0
_PAGE = re.compile(r"(?:page|entry):[0-9a-f]+:([^:]+)")


class Notices(InMemorySubscriptionBus):
    """Announces changes by the tools of this server at once, and those of others after the next poll."""

    def __init__(self, served: ServedStore) -> None:
        super().__init__()
        self._served = served
        self._looking: asyncio.Task[None] | None = None
        #: The last event of the log that was announced for each address.
        self._announced: dict[str, int] = {}

    async def publish(self, event: ServerEvent) -> None:
        if isinstance(event, ResourceUpdated) and self._listeners:
            self._announced[event.uri] = await anyio.to_thread.run_sync(self._last)
        await super().publish(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Listen; the first who does makes it look at the log, and after the last one it stops."""
        leave = super().subscribe(listener)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

        def unsubscribe() -> None:
            leave()
            if not self._listeners and self._looking is not None:
                self._looking.cancel()

        return unsubscribe

    async def _look(self) -> None:
        seen = await anyio.to_thread.run_sync(self._last)
        while True:
            await anyio.sleep(LOOK_SECONDS)
            now = await anyio.to_thread.run_sync(self._last)
            if now > seen:
                for uri in await anyio.to_thread.run_sync(self._changed, seen + 1):
                    # Writes of this server were announced when they were made.
                    if self._announced.pop(uri, 0) <= seen:
                        await super().publish(ResourceUpdated(uri=uri))
                self._announced = {uri: seq for uri, seq in self._announced.items() if seq > now}
            # The number is smaller after a restore, and 0 if the store could not be read.
            seen = now or seen

    def _last(self) -> int:
        # The next call meets the same error and reports it.
        with suppress(ChronoError, OSError):
            return self._served.store.wal_seq()
        return 0

    def _changed(self, since: int) -> list[str]:
        """Return the addresses of what changed, of that which the scope sees and nothing else."""
        with suppress(ChronoError, OSError):
            ids = self._served.door.engine.changed_since(since, faces=True)
            return list(dict.fromkeys(map(_address, ids)))
        return []


def _address(record_id: str) -> str:
    page = _PAGE.match(record_id)
    return MEMORY_URI + record_id if page is None else PAGE_URI + page[1]


def add_subscriptions(server: MCPServer[Any], notices: Notices) -> None:
    """Let clients of the era with a handshake listen, too: they ask for one address after the other."""
    # By who listens: what a client said at its handshake is the same object all along.
    left: dict[tuple[int, str], tuple[object, Callable[[], None]]] = {}
    sending: set[asyncio.Task[None]] = set()

    async def subscribe(ctx: ServerRequestContext[Any], params: SubscribeRequestParams) -> EmptyResult:
        session, uri = ctx.session, str(params.uri)
        client = session.client_params

        async def tell() -> None:
            try:
                await session.send_resource_updated(uri)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                forget(client, uri)

        def listener(event: ServerEvent) -> None:
            if isinstance(event, ResourceUpdated) and event.uri == uri:
                task = asyncio.get_running_loop().create_task(tell())
                sending.add(task)
                task.add_done_callback(sending.discard)

        if (id(client), uri) not in left:
            left[id(client), uri] = client, notices.subscribe(listener)
        return EmptyResult()

    async def unsubscribe(ctx: ServerRequestContext[Any], params: UnsubscribeRequestParams) -> EmptyResult:
        forget(ctx.session.client_params, str(params.uri))
        return EmptyResult()

    def forget(client: object, uri: str) -> None:
        _, leave = left.pop((id(client), uri), (None, None))
        if leave is not None:
            leave()

    # The SDK has no decorator for these two.
    inner = server._lowlevel_server
    inner.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
    inner.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)
