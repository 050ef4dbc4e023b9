"""Feeds hostile page files, imports and settings to every reader, and measures what each of them costs.

A child reads each input, so that a runaway reader harms nobody. No step may take more than a second of
processor time for each 100 kB of input (one second at least) or 64 MB of memory. Time on the wall does not
count, so that other work on the machine changes little. It succeeds, or it raises an error that the library
documents; a good page beside a hostile one is taken in either way.
"""

from __future__ import annotations

import base64
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import harness
from chronomemory import ChronoStore
from chronomemory.blocks.configuration import configured
from chronomemory.bridge import EsdbBridge
from chronomemory.cli.session import RefusedError
from chronomemory.cli.transfer import bring_history, bring_records
from chronomemory.cli.workspace import read_json
from chronomemory.errors import ChronoError
from chronomemory.graph import JsonlMemoryEventLog, Workspace
from chronomemory.mcp.clients import CLIENTS
from chronomemory.pages import Pages

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("corpus", "support")]
from cases_foreign import foreign_sentinel
from cases_packed import BLOCK_BYTES, MAGIC, MIB, frame, packed, xxh64
from craft import one
from verdicts import verify_log

#: What a step may take: bytes of memory, and seconds for so many bytes of input.
MOST_GROWTH = 64 << 20
BYTES_A_SECOND = 100_000
#: A step that takes so many times its seconds is ended.
PATIENCE = 10
#: An input that only takes too long is tried so often.
ATTEMPTS = 3
#: What a step may raise.
DOCUMENTED = (ChronoError, RefusedError, ValueError, OSError)
ZEROS_CHECKSUM = (xxh64(bytes(MIB)) & 0xFFFFFFFF).to_bytes(4, "little")
ID = "20260420-1402-a1b23c"
ENTRY = f"## [2026-04-20T14:02:11] {{id: {ID}}} #tea\n"
HEAD = "---\ndescription: Tea\ntags: [tea]\n---\n\n# Tea\n\n"
GOOD_PAGE = f"{HEAD}{ENTRY}Green at 70, see [[person-ann|Ann]] and [x](topic-y.md).\n"
GOOD_LINE = {"id": "r1", "kind": "fact", "label": "tea", "data": {"n": 1, "text": "green", "list": [1, 2.5]}}

Bait = Callable[[random.Random, int], bytes]
Step = tuple[str, Callable[[], object]]


def repeated(piece: str, before: str = "", after: str = "") -> Bait:
    """Return a bait of one piece, as often as fits."""

    def made(_: random.Random, size: int) -> bytes:
        return (before + piece * max(1, size // len(piece.encode())) + after).encode()

    return made


def alias_bomb(chance: random.Random, size: int) -> bytes:
    levels = min(40, 3 + size // 200 + chance.randrange(6))
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return ("---\n" + "\n".join(lines) + f"\ndescription: *a{levels - 1}\n---\n# T\n").encode()


def many_entries(_: random.Random, size: int) -> bytes:
    number = max(1, size // 70)
    entries = (f"## [2026-04-20T14:02:11] {{id: e{n}}} #t{n}\nsaid {n}\n\n" for n in range(number))
    return (HEAD + "".join(entries)).encode()


def chained_entries(_: random.Random, size: int) -> bytes:
    number = max(2, size // 90)
    entries = (
        f"## [2026-04-20T14:02:11] {{id: e{n}}} #t #superseded-by:e{n + 1}\n~~said {n}~~\n\n"
        for n in range(number)
    )
    return (HEAD + "".join(entries) + f"## [2026-04-20T14:02:11] {{id: e{number}}} #t\nlast\n").encode()


def distinct(letters: str, before: str = "") -> Bait:
    """Return a bait of many different words."""

    def made(chance: random.Random, size: int) -> bytes:
        length = len(letters[:7].encode()) + len(before) + 1
        words = ("".join(chance.choices(letters, k=7)) for _ in range(max(1, size // length)))
        end = "]]" if before == "[[" else ""
        return (HEAD + ENTRY + " ".join(f"{before}{word}{end}" for word in words)).encode()

    return made


def noise(chance: random.Random, size: int) -> bytes:
    return chance.randbytes(size)


def signs(chance: random.Random, size: int) -> bytes:
    pieces = (
        "`~<!->[](){}#|\\:/%&*!'\"\n\r\t \x00\ufeff\u2028a1-_=+.,;^$@?",
        ["```", "~~", "<!--", "-->", "[[", "]]", "](", "://", "##", "%%", "<del>", "</del>", "---\n", ENTRY],
    )
    made = "".join(chance.choice(chance.choice(pieces)) for _ in range(size // 2))
    return (HEAD + ENTRY + made).encode()


def mutated(good: str) -> Bait:
    """Return a bait that is a good input with random edits."""

    def made(chance: random.Random, size: int) -> bytes:
        text = bytearray(good.encode() * (1 + min(20, size // max(1, len(good)))))
        for _ in range(chance.randrange(1, 12)):
            at, length = chance.randrange(len(text) + 1), chance.randrange(1, 30)
            match chance.randrange(4):
                case 0:
                    del text[at : at + length]
                case 1:
                    text[at:at] = chance.randbytes(length)
                case 2:
                    text[at:at] = bytes([chance.choice(b"[]{}&*!|>'\"%#\\~`<-:\n\r\0")]) * length
                case _:
                    text[at:at] = text[at : at + length] * chance.randrange(1, 200)
        return bytes(text)

    return made


def in_entry(piece: str, after: str = "") -> Bait:
    return repeated(piece, HEAD + ENTRY, after)


def in_yaml(piece: str, before: str = "", after: str = "") -> Bait:
    """Return a bait in a frontmatter, below and above its limit of length."""

    def made(chance: random.Random, size: int) -> bytes:
        held = size if chance.random() < 0.2 else min(size, 60_000)
        return repeated(piece, f"---\n{before}", f"{after}\n---\n# T\n")(chance, held)

    return made


PAGES: dict[str, Bait] = {
    "alias bomb": alias_bomb,
    "flow lists": in_yaml("[", "a: "),
    "flow maps": in_yaml("{a: ", "a: "),
    "closed flow lists": in_yaml("[],", "a: [", "]"),
    "block lists": in_yaml("- ", "a:\n"),
    "block maps": in_yaml("? "),
    "list items": in_yaml("- x\n", "a:\n"),
    "keys": in_yaml("k: v\n"),
    "long scalar": in_yaml("x", "description: "),
    "quoted escapes": in_yaml("\\n", 'description: "', '"'),
    "single quotes": in_yaml("''", "description: '", "'"),
    "open quote": in_yaml("x ", 'description: "'),
    "plain lines": in_yaml("x\n ", "description: "),
    "digits": in_yaml("9", "description: "),
    "hexadecimal": in_yaml("f", "description: 0x"),
    "underscores": in_yaml("1_", "description: "),
    "tag letters": in_yaml("x", "a: !", " 1"),
    "anchor letters": in_yaml("x", "a: &", " 1"),
    "comments": in_yaml("#\n"),
    "tags": in_yaml("a, ", "tags: [", "b]"),
    "spaces": in_yaml(" ", "a:", "b: 1"),
    "spaces in a key": in_yaml(" ", "entry_count", ":1"),
    "dashes": in_yaml("--- x\n"),
    "colons": in_yaml("a:"),
    "open frontmatter": repeated("a: 1\n", "---\n"),
    "blank frontmatter": repeated("\n", "---\n", "---\n"),
    "NUL": repeated("\0"),
    "BOM": repeated("\ufeff"),
    "CR": in_entry("\r"),
    "CRLF": in_entry("\r\n"),
    "LF": in_entry("\n", "x"),
    "long line": in_entry("x"),
    "words": in_entry("x "),
    "headings": in_entry("## [\n"),
    "near headings": in_entry("## [2026-04-20T14:02] {id: x\n"),
    "same ids": in_entry("## [2026-04-20T14:02] {id: x}\n"),
    "heading spaces": repeated(" ", HEAD + "##", "x"),
    "heading tags": repeated(" #a", HEAD + ENTRY.rstrip()),
    "heading id": repeated("a", HEAD + "## [2026-04-20T14:02] {id: "),
    "titles": repeated("# \t", "", "x"),
    "title spaces": repeated(" ", "# x", "\ty"),
    "moments": in_entry("2026-04-20 "),
    "indented marks": in_entry(">"),
    "wiki opens": in_entry("[["),
    "wiki half": in_entry("[[a|"),
    "link opens": in_entry("["),
    "link labels": in_entry("[]("),
    "link targets": in_entry("[a](b("),
    "link spaces": in_entry(" ", "[a](b" * 10),
    "link titles": in_entry("[a](b c"),
    "link parentheses": repeated("(x)", HEAD + ENTRY + "[a](b", ")"),
    "link angles": in_entry("[a](<"),
    "schemes": in_entry("a://"),
    "scheme letters": in_entry("a+", "://b"),
    "colons and slashes": in_entry("://"),
    "backticks": in_entry("`"),
    "odd backticks": in_entry("` `` ``` ```` "),
    "growing backticks": lambda _, size: (
        HEAD + ENTRY + " ".join("`" * n for n in range(1, int((2 * size) ** 0.5)))
    ).encode(),
    "fences": in_entry("```\n"),
    "open fences": in_entry("```x\n"),
    "different fences": lambda _, size: (
        HEAD + ENTRY + "".join("~" * n + "\n" for n in range(3, int((2 * size) ** 0.5)))
    ).encode(),
    "tilde fences": in_entry("~~~\n## [2026-1\n"),
    "strikes": in_entry("~~"),
    "strike words": in_entry("~~a"),
    "strike escapes": in_entry("~~\\"),
    "one strike": in_entry("a", "~~"),
    "tildes": in_entry("~"),
    "backslashes": in_entry("\\"),
    "backslash tildes": in_entry("\\~ "),
    "comments opened": in_entry("<!--"),
    "comments closed": in_entry("-->"),
    "reasons": in_entry("\n<!-- reason: a"),
    "asides": in_entry("%%a"),
    "del opened": in_entry("<del>"),
    "del mixed": in_entry("<s>a<del>b"),
    "angles": in_entry("<a "),
    "angle spaces": in_entry("<a" + " " * 40),
    "references": in_entry("[a]:\n"),
    "open references": in_entry("[a"),
    "hashtags": in_entry("#"),
    "tagged": in_entry("#a/ "),
    "numbers": in_entry("1,"),
    "signs of numbers": in_entry("-"),
    "exponents": in_entry("1e+"),
    "percents": in_entry("1 %"),
    "wide letters": in_entry("漢字"),
    "combining": in_entry("e\u0301"),
    "marks on one letter": in_entry("\u0301", "a"),
    "a struck body": repeated("a", HEAD + ENTRY + "~~", "~~"),
    "tildes in a struck body": repeated("~a", HEAD + ENTRY + "~~", "~~"),
    "a struck word": repeated("a ", HEAD + ENTRY + "x ~~", "~~"),
    "a reason": repeated("-a", HEAD + ENTRY + "~~a~~\n<!-- reason: ", " -->"),
    "a struck tag": repeated("a ", HEAD + ENTRY + "<del>", "</del>"),
    "escapes in a strike": repeated("\\a", HEAD + ENTRY + "x ~~"),
    "wide words": distinct("\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d"),
    "distinct words": distinct("abcdefgh"),
    "distinct tags": distinct("abcdefgh", "#"),
    "distinct links": distinct("abcdefgh", "[["),
    "superseded chain": chained_entries,
    "entries": many_entries,
    "noise": noise,
    "signs": signs,
    "edited": mutated(GOOD_PAGE),
}

JSON_PIECES = {
    "arrays": ("[", "", ""),
    "objects": ('{"a":', "", ""),
    "empty arrays": ("[],", "[", "[]]"),
    "empty objects": ("{},", "[", "{}]"),
    "digits": ("9", "", ""),
    "decimals": ("9", "0.", ""),
    "exponent": ("9", "1e", ""),
    "negative exponent": ("9", "1e-", ""),
    "spaces": (" ", "", "1"),
    "strings": ("a", '"', '"'),
    "open string": ("a", '"', ""),
    "escapes": ("\\u0061", '"', '"'),
    "half pairs": ("\\ud800", '"', '"'),
    "backslashes": ("\\", '"', '"'),
    "same keys": ('"a":1,', "{", '"a":1}'),
    "numbers": ("1,", "[", "1]"),
    "NUL": ("\0", "", ""),
    "comments": ("/*", "", ""),
    "line comments": ("//\n", "", "1"),
    "closed comments": ("/**/", "", "1"),
    "comment stars": ("*", "/*", ""),
}


def json_baits(before: str, after: str, good: object) -> dict[str, Bait]:
    """Return baits that put a hostile value between two pieces of a file."""
    baits = {
        name: repeated(piece, before + begin, end + after)
        for name, (piece, begin, end) in JSON_PIECES.items()
    }
    spelled = json.dumps(good)
    return {
        **baits,
        "bare arrays": repeated("["),
        "bare objects": repeated('{"a":'),
        "blank lines": repeated("\n"),
        "truncated": lambda chance, _: spelled[: chance.randrange(len(spelled))].encode(),
        "good lines": repeated(spelled + "\n"),
        "edited": mutated(spelled + "\n"),
        "noise": noise,
    }


ROWS = json_baits('{"id":"r1","data":{"x":', "}}\n", GOOD_LINE)
LISTS = json_baits('[{"id":"R1","title":"t","x":', "}]", [{"id": "R1", "title": "t"}])
ENVELOPES = json_baits(
    '{"schema":"chronomemory.graph/1","nodes":[{"id":"n","kind":"k","data":{"x":',
    "}}]}",
    {"nodes": [{"id": "n", "kind": "k"}], "edges": []},
)
EVENTS = json_baits(
    '{"id":"e","kind":"k","ts":"2026-01-01T00:00:00Z","data":{"x":', "}}\n", {"id": "e", "kind": "k"}
)
STATES = json_baits(
    '{"seq":9,"last_hash":"","ts":"","records":[{"id":"r1","data":{"x":',
    "}}]}",
    {"seq": 9, "last_hash": "", "records": []},
)
CONFIGS = json_baits('{"mcpServers":{"x":', "}}", {"mcpServers": {}})
TOMLS: dict[str, Bait] = {
    "arrays": repeated("[", "a = "),
    "tables": repeated("a.", "[", "b]\nx = 1\n"),
    "dotted keys": repeated("a.", "", "b = 1\n"),
    "same tables": repeated("[[a.b]]\n"),
    "inline": repeated("{a = ", "a = "),
    "strings": repeated("a", 'a = "', '"'),
    "digits": repeated("9", "a = "),
    "writer": repeated("9", "[writer]\nsoft_limit_tokens = "),
    "comments": repeated("#\n"),
    "keys": lambda _, size: "".join(f"k{n} = {n}\n" for n in range(size // 12)).encode(),
    "edited": mutated('[writer]\nsoft_limit_tokens = 5\n[mcp_servers.x]\ncommand = "a"\n'),
    "noise": noise,
}


def zeros(number: int) -> bytes:
    """Return frames of an archive of which each unpacks to a mebibyte of zeros."""
    heads = ((BLOCK_BYTES << 3 | 1 << 1 | (block == 7)).to_bytes(3, "little") for block in range(8))
    blocks = b"".join(head + b"\0" for head in heads)
    return (MAGIC + b"\xa4" + MIB.to_bytes(4, "little") + blocks + ZEROS_CHECKSUM) * number


ARCHIVES: dict[str, Bait] = {
    "zeros": lambda _, size: zeros(max(1, size // len(zeros(1)))),
    "many lines": lambda _, size: frame(b"\n" * min(MIB, size)),
    "claims too much": lambda _, size: frame(b"a\n" * (size // 2), claims=MIB),
    "claims gigabytes": lambda _, size: frame(b"a\n" * (size // 2), claims=(1 << 32) - 1),
    "truncated": lambda chance, _: zeros(3)[: chance.randrange(len(zeros(3)))],
    "noise": noise,
    "noise in a frame": lambda chance, size: frame(chance.randbytes(min(MIB, size))),
}


# Readers: each yields the steps that an input goes through in an empty project.


def pages_sync(folder: Path, content: bytes) -> Iterator[Step]:
    pages = Pages(folder)
    memory = folder / "memory"
    (memory / "topic-x.md").write_bytes(content)
    (memory / "topic-good.md").write_text(GOOD_PAGE)

    def sync() -> None:
        if "topic-good" not in pages.sync().created:
            raise AssertionError("the good page was not taken in")

    yield "sync", sync
    yield "links", lambda: pages.links("topic-x")
    yield "read", lambda: pages.read("topic-x", include_superseded=True)
    yield "search", lambda: pages.search("green tea")
    yield "append", lambda: pages.append("topic-x", "Black at 95.", ["tea"])
    yield "supersede", lambda: pages.supersede("topic-x", ID, "White at 60.", "it changed")
    yield "compact", lambda: pages.compact("topic-x")
    yield "rebuild_index", pages.rebuild_index
    yield "rebuild", pages.rebuild


def pages_append(folder: Path, content: bytes) -> Iterator[Step]:
    pages = Pages(folder)
    text = content.decode("utf-8", "replace")
    pages.create("topic-x", "x")
    entries: list[str] = []
    yield "append", lambda: entries.append(pages.append("topic-x", text, ["tea"]))
    yield "supersede", lambda: pages.supersede("topic-x", entries[0] if entries else ID, text, text)
    yield "create", lambda: pages.create("topic-y", text)


def vault(folder: Path, content: bytes) -> Iterator[Step]:
    notes = folder / "notes"
    notes.mkdir()
    (notes / "x.md").write_bytes(content)
    (notes / "good.md").write_text(GOOD_PAGE)
    pages = Pages(folder, folder=notes, layout="free")
    yield "sync", pages.sync
    yield "sync again", pages.sync
    yield "search", lambda: pages.search("tea")


def rows(folder: Path, content: bytes) -> Iterator[Step]:
    file = folder / "rows.ndjson"
    file.write_bytes(content)
    with ChronoStore(folder) as store:
        yield "ingest", lambda: store.ingest(file)
        yield "ingest stream", lambda: store.ingest(file.open("rb"))
        yield "ingest skip", lambda: store.ingest(file, on_error="skip")
        yield "ingest fields", lambda: store.ingest(file, fields={"id": "id", "data": "*"}, on_error="skip")
        yield "import", lambda: bring_records(store, file, None)
    with ChronoStore(folder / "other") as other:
        yield "import history", lambda: bring_history(other, file, None)


def objects(folder: Path, content: bytes) -> Iterator[Step]:
    (folder / ".specsmith").mkdir()
    (folder / ".specsmith" / "requirements.json").write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield "bridge", lambda: EsdbBridge(folder).requirements()
        with ChronoStore(folder) as store:
            yield "migrate", lambda: store.migrate_from_json(folder / ".specsmith")


def graphs(folder: Path, content: bytes) -> Iterator[Step]:
    file = folder / "envelope.json"
    file.write_bytes(content)
    with Workspace.create(folder / "shelf") as shelf:
        before = shelf.export_graph()

        def bring() -> None:
            try:
                shelf.import_graph(read_json(file))
            except DOCUMENTED:
                if shelf.export_graph() != before:
                    raise AssertionError("a refused import has written something") from None
                raise

        yield "import", bring


def events(folder: Path, content: bytes) -> Iterator[Step]:
    (folder / "events.jsonl").write_bytes(content)
    log = JsonlMemoryEventLog(folder / "events.jsonl")
    yield "events", log.events
    yield "diagnose", log.diagnose
    with Workspace.create(folder / "shelf") as shelf:
        for name in ("workspace.json", "events.jsonl", "audit.jsonl"):
            (folder / "shelf" / name).write_bytes(content)
        yield "diagnose workspace", shelf.diagnose
        yield "rebuild", shelf.rebuild


def configs(folder: Path, content: bytes) -> Iterator[Step]:
    text = content.decode("utf-8", "replace")
    client = CLIENTS["cursor"]
    yield "client", lambda: client.with_entry(text, "x", client.entry(["a"]))
    yield "client without", lambda: client.without_entry(text, "x")
    file = folder / "config.json"
    file.write_bytes(content)
    yield "blocks", lambda: configured(None, file)


def tomls(folder: Path, content: bytes) -> Iterator[Step]:
    # The settings of a client in TOML are the user's own, in their home, so no stranger's.
    file = folder / "config.toml"
    file.write_bytes(content)
    yield "blocks", lambda: configured(None, file)
    with Pages(folder) as pages:
        pages.create("topic-x", "x")
    (folder / ".chronomemory" / "config.toml").write_bytes(content)
    yield "pages", lambda: Pages(folder).append("topic-x", "x", ["y"])


def cursors(folder: Path, content: bytes) -> Iterator[Step]:
    cursor = base64.urlsafe_b64encode(content).decode().rstrip("=")
    with ChronoStore(folder) as store:
        yield "query", lambda: store.query(limit=5, after=cursor)
        yield "search", lambda: store.search("x", limit=5, after=cursor)


def states(folder: Path, content: bytes) -> Iterator[Step]:
    """Read a log that another tool compacted and its snapshot, by the engine and both verifiers."""
    place = folder / ".chronomemory"
    place.mkdir()
    (place / "events.wal").write_bytes(b"".join(foreign_sentinel().add().lines))
    (place / "snapshot.json").write_bytes(content)
    store = ChronoStore(folder)
    yield "open", store.record_count
    yield "verify", store.verify
    yield "verify independently", lambda: verify_log.verify_folder(folder)


def archives(folder: Path, content: bytes) -> Iterator[Step]:
    """Read a store whose log names a hostile archive by its digest."""
    crafted = packed(one(), content)
    place = folder / ".chronomemory"
    for name, file in {**crafted.files, "events.wal": b"".join(crafted.chain.lines)}.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(file)
    store = ChronoStore(folder)
    yield "verify", store.verify
    yield "replay", store.replay
    yield "repair", store.upkeep.repair


READERS: list[tuple[str, Callable[[Path, bytes], Iterator[Step]], dict[str, Bait]]] = [
    ("page file", pages_sync, PAGES),
    ("page file", pages_sync, PAGES),
    ("page file", pages_sync, PAGES),
    ("page text", pages_append, PAGES),
    ("note", vault, PAGES),
    ("rows", rows, ROWS),
    ("objects", objects, LISTS),
    ("envelope", graphs, ENVELOPES),
    ("events", events, EVENTS),
    ("client config", configs, CONFIGS),
    ("TOML", tomls, TOMLS),
    ("cursor", cursors, ROWS),
    ("archive", archives, ARCHIVES),
    ("state", states, STATES),
]


#: An archive is streamed: its time is that of what it unpacks to. A line of a log may have 16 MiB, and two of
#: them are held at a time, however small they were packed.
UNPACKED = {"archive": MIB // len(zeros(1))}
MORE_GROWTH = {"archive": 32 << 20}


def peak() -> int:
    """Return the most memory that this process has had since the peak was reset, in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise harness.Skipped("this system does not tell how much memory a process had")


def reset_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def try_steps(steps: Iterator[Step], size: int, growth: int, begin: Callable[[str], None]) -> list[str]:
    """Go through the steps, and return what exceeds its limits or raises what it must not."""
    found = []
    allowed = max(1.0, size / BYTES_A_SECOND)
    for name, step in steps:
        begin(name)
        reset_peak()
        before, began, raised = peak(), time.process_time(), ""
        signal.setitimer(signal.ITIMER_PROF, PATIENCE * allowed)
        try:
            step()
        except DOCUMENTED as error:
            if len(str(error)) > 2_000:
                raised = f"an error of {len(str(error)):,} characters"
        except BaseException as error:
            raised = f"{type(error).__name__}: {str(error)[:200]}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        seconds, grown = time.process_time() - began, peak() - before
        if raised:
            found.append(f"{name} raised {raised}")
        if seconds > allowed:
            found.append(f"{name} took {seconds:.1f} s of {allowed:.1f} s")
        if grown > growth:
            found.append(f"{name} took {grown >> 20} MB of {growth >> 20} MB")
    return found


def in_child(work: Callable[[Callable[[str], None]], list[str]]) -> list[str]:
    """Do something in a child, and return what it found; what it prints is found, too.

    The child says which step it begins, so that one which never ends is known.
    """
    read, write = os.pipe()
    out = os.memfd_create("stdout")
    pid = os.fork()
    if pid == 0:
        os.dup2(out, 1)
        code, said = 1, os.fdopen(write, "w")
        try:
            # A runaway reader must not take the machine's memory.
            limit = (4 << 30, 4 << 30)
            resource.setrlimit(resource.RLIMIT_AS, limit)
            warnings.simplefilter("ignore", RuntimeWarning)
            found = work(lambda name: print(name, file=said, flush=True))
            print(json.dumps(found), end="", file=said, flush=True)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        heard = pipe.read()
    _, status = os.waitpid(pid, 0)
    printed = os.fstat(out).st_size
    os.close(out)
    *begun, last = heard.decode().split("\n")
    if status:
        step = begun[-1] if begun else "its beginning"
        if os.WIFSIGNALED(status):
            return [f"{step} was ended by {signal.Signals(os.WTERMSIG(status)).name}"]
        return [f"the child failed behind {step}; its trace is on stderr"]
    found: list[str] = json.loads(last)
    return [*found, f"{printed} bytes were printed"] if printed else found


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Feed every bait to every reader once, as far as the runs go, then baits of random sizes."""
    chance = random.Random(order.seed)
    each = [(name, reader, bait, made) for name, reader, baits in READERS[2:] for bait, made in baits.items()]
    chance.shuffle(each)
    for number in range(order.runs):
        if number < len(each):
            name, reader, bait, made = each[number]
            length = 100_000
        else:
            name, reader, baits = chance.choice(READERS)
            bait, made = chance.choice(list(baits.items()))
            length = int(10 ** chance.uniform(1, 6 if order.thorough else 5.3))
        seed = chance.randrange(1 << 30)
        content = made(random.Random(seed), length)
        with harness.project(f"hostile-{order.seed}-{number}", outcome) as folder:
            for attempt in range(ATTEMPTS):
                place = folder / str(attempt)
                place.mkdir()
                size, growth = len(content) * UNPACKED.get(name, 1), MOST_GROWTH + MORE_GROWTH.get(name, 0)
                found = in_child(partial(try_steps, reader(place, content), size, growth))
                # Other work on this machine may have slowed it down.
                if not all(" s of " in one for one in found) or not found:
                    break
            if found:
                (folder / "hostile.input").write_bytes(content)
                what = f"{name}, {bait}, {len(content):,} bytes, seed {seed}: {'; '.join(found)}"
                outcome.found.append(what)
                harness.say(found=what)
        outcome.runs += 1
        outcome.count(name)
        if number % 50 == 49:
            harness.say(done=number + 1, of=order.runs, found=len(outcome.found))


if __name__ == "__main__":
    harness.main("hostile", work)
