"""HTTP is closed to everyone but who has the token and speaks to this machine by its own name."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from assistants import ERAS, Talk
from chronomemory import ChronoStore, Scope
from chronomemory.cli import app
from chronomemory.errors import InvalidArgument
from chronomemory.mcp import server as mcp_server
from chronomemory.mcp.served_store import ServedStore
from chronomemory.mcp.server import checked_host, http_options, make_server, serve_http
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from typer.testing import CliRunner
from uvicorn import Config, Server

TOKEN = "a-token-that-nobody-guesses"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A server on a port of its own, over real sockets."""
    with ChronoStore(tmp_path) as store, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        number: int = listening.getsockname()[1]
        served = ServedStore(store, Scope(user="ann"), structured=True)
        served_app = make_server(served, token=TOKEN).streamable_http_app(
            host="127.0.0.1", **http_options(number)
        )
        server = Server(Config(served_app, log_level="error", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield number
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def post(port: int, body: bytes = b"", path: str = "/mcp", **changed: str | None) -> tuple[int, bytes]:
    """Send a request with a token, unless told otherwise, and return its status and body."""
    headers: dict[str, str | None] = {
        "Host": f"127.0.0.1:{port}",
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("POST", path, skip_host=True)
    sent = body or json.dumps(HELLO).encode()
    for name, value in headers.items():
        if value is not None:
            connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(sent)))
    connection.endheaders()
    with suppress(OSError):  # it need not read to the end what it refuses
        connection.send(sent)
    answer = connection.getresponse()
    told = answer.status, answer.read()
    connection.close()
    return told


def test_who_may_not_come_in(port: int) -> None:
    assert post(port)[0] == 200
    assert post(port, Authorization=None)[0] == 401
    for wrong in ("Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer ", TOKEN):
        assert post(port, Authorization=wrong)[0] == 401
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example:80"):
        assert post(port, Host=host)[0] == 421
    for host in ("127.0.0.1", f"127.0.0.1:{port}.evil.example", f"127.0.0.1:{port}0", "localhost:1"):
        assert post(port, Host=host)[0] == 421
    for origin in ("", " ", "https://evil.example", "null", f"http://evil.example:{port}"):
        assert post(port, Origin=origin)[0] == 403
    for origin in (
        f"http://127.0.0.1:{port}.evil.example",
        "http://localhost:1",
        f"https://127.0.0.1:{port}",
    ):
        assert post(port, Origin=origin)[0] == 403
    for name in ("127.0.0.1", "localhost", "[::1]"):
        assert post(port, Host=f"{name}:{port}", Origin=f"http://{name}:{port}")[0] == 200
    assert post(port, Content_Type="text/plain")[0] in (400, 415)
    # A page of somebody else that found out the name of the machine has no token all the same.
    assert post(port, Origin="https://evil.example", Authorization=None)[0] in (401, 403)


class TestSessions:
    @pytest.fixture(autouse=True)
    def few_and_short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the server close sessions after half a second and open two at a time."""
        monkeypatch.setattr(mcp_server, "_SESSION_IDLE_SECONDS", 0.5)
        monkeypatch.setattr(mcp_server, "_MOST_SESSIONS", 2)

    def test_an_idle_session_is_closed(self, few_and_short: None, port: int) -> None:
        listing = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).encode()
        session = opened_session(port)
        assert post(port, listing, Mcp_Session_Id=session)[0] == 200
        time.sleep(1.5)
        assert post(port, listing, Mcp_Session_Id=session)[0] == 404
        assert post(port)[0] == 200

    @pytest.mark.parametrize("body", [b"\xff\xfe", b"{", b"[" * 100_000, b"[]", b"{}"])
    def test_what_cannot_be_read_opens_no_session(self, few_and_short: None, port: int, body: bytes) -> None:
        assert {post(port, body)[0] for _ in range(5)} == {400}
        assert [post(port)[0] for _ in range(2)] == [200, 200]

    def test_no_more_sessions_are_opened_than_the_limit(self, few_and_short: None, port: int) -> None:
        assert [post(port)[0] for _ in range(3)] == [200, 200, 503]
        time.sleep(1.5)
        assert post(port)[0] == 200


def opened_session(port: int) -> str:
    """Open a session and return its id."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    connection.request("POST", "/mcp", json.dumps(HELLO).encode(), headers)
    answer = connection.getresponse()
    session = answer.headers["mcp-session-id"]
    answer.read()
    connection.close()
    return str(session)


def test_ten_megabytes_are_refused(port: int) -> None:
    call = {"name": "add_memory", "arguments": {"content": "x" * 10_000_000}}
    body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}).encode()
    assert post(port, body)[0] == 413


def test_what_cannot_be_read_is_refused_and_the_rest_is_served(port: int) -> None:
    head = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add_memory","arguments":'
    for arguments in (
        b'{"content":"half \\ud83d of an emoji"}',
        b'{"content":"x","tags":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"content":}',
        b"",
    ):
        status, told = post(port, head + arguments + b"}}")
        assert status == 400, told
        assert len(told) < 2_000
    assert post(port, b"\xff\xfe")[0] == 400
    assert post(port)[0] == 200


def test_an_address_chooses_no_scope(port: int) -> None:
    """Nobody is served under another path, and what is asked behind the right one changes nothing."""
    for path in ("/", "/mcp/bob", "/bob/mcp", "/mcp/../bob", "/mcp%2fbob"):
        assert post(port, path=path)[0] in (307, 404)
    assert asyncio.run(_scope_of(f"http://127.0.0.1:{port}/mcp?user=bob")) == "user=ann"


async def _scope_of(address: str) -> str:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-User": "bob"}
    async with (
        create_mcp_http_client(headers=headers) as caller,
        Client(streamable_http_client(address, http_client=caller)) as client,
    ):
        return str((await Talk(client).call("search_memories", query="tea"))["scope"])


@pytest.mark.parametrize("mode", ERAS)
def test_a_client_with_the_token_is_served(port: int, mode: str) -> None:
    async def work(talk: Talk) -> None:
        added = await talk.call("add_memory", content="Tea at four")
        assert added["scope"] == "user=ann"
        [found] = (await talk.call("search_memories", query="tea"))["memories"]
        assert found["id"] == added["memory_id"]

    async def run() -> None:
        async with create_mcp_http_client(headers={"Authorization": f"Bearer {TOKEN}"}) as caller:
            transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=caller)
            async with Client(transport, mode=mode) as client:
                await work(Talk(client))

    asyncio.run(run())


def test_only_this_machine_and_a_long_token(served: ServedStore) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.org", "127.0.0.2"):
        with pytest.raises(InvalidArgument, match=r"host: 127\.0\.0\.1"):
            checked_host(host)
    assert [checked_host(host) for host in ("127.0.0.1", "::1", "localhost")]
    with pytest.raises(InvalidArgument, match="at least 16 characters"):
        serve_http(served, "memories", host="127.0.0.1", port=1, token="short")


def test_a_short_token_is_refused_before_anything_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHRONOMEMORY_MCP_TOKEN", "short")
    refused = CliRunner().invoke(app, ["mcp", "--http", "--project", str(tmp_path)])
    assert refused.exit_code == 2
    assert "at least 16 characters expected, got 5" in refused.output
    assert "serving" not in refused.output
