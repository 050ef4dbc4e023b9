"""A vault of Markdown notes as people keep them: nested folders, several frontmatters, links, odd names."""

from __future__ import annotations

from pathlib import Path

#: What the notes say, by their files.
NOTES: dict[str, bytes] = {
    "Home.md": (
        b"# Home\n\nStart at [[Projects/Tea House/Plan|the plan]] or [[Reading list]].\n\n![[cover.png]]\n"
    ),
    "Reading list.md": b"- [[Dune]]\n- [[Solaris]] by #author/lem\n",
    "index.md": b"My own index, not one of a tool: [[Home]].\n",
    "README.md": b"This vault is synced with git.\n",
    "empty.md": b"",
    "blank.md": b"\n \n",
    "no newline.md": b"The last line has no end",
    "windows.md": (
        b"---\r\ntags: [win]\r\n---\r\n# Windows\r\n\r\nLines end in two bytes.\r\n\r\n## Second\r\nMore.\r\n"
    ),
    "bom.md": "\ufeff# Marked\n\nByte order mark.\n".encode(),
    "project-looks prefixed.md": b"A name that begins with a prefix by chance.\n",
    'C++ & "quotes" (draft) 100%.md': b"Signs in a name: templates.\n",
    "10:30 stand-up.md": b"A colon in a name: standup.\n",
    "\u6f22\u5b57/\u65e5\u8a18.md": "\u4eca\u65e5\u306f\u304a\u8336\u3002 #\u304a\u8336\n".encode(),
    "\u05e9\u05dc\u05d5\u05dd.md": "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd\n".encode(),
    "Gr\u00fc\u00dfe \U0001f375.md": "Gr\u00fc\u00dfe aus [[\u65e5\u8a18]].\n".encode(),
    "Projects/Tea House/Plan.md": (
        b"---\ntitle: The great plan\naliases:\n  - Masterplan\n  - Big Idea\ntags:\n  - work/tea\n  - 2026\n"
        b"created: 2026-01-05\nupdated: 2026-02-07T10:00:00+01:00\nrating: 5 # mine\nodd: {a: [1, 2]}\n---\n"
        b"Opens in spring. See [[Menu#Prices|prices]], [[../Budget]] and [money](../Budget.md).\n\n"
        b"## When\n\nMarch. #deadline\n\n## Who\n\n[[Alice]] and [[People/Bob Stone|Bob]].\n\n"
        b"## When\n\nOr April.\n"
    ),
    "Projects/Tea House/Menu.md": (
        b"# Menu\n\n## Prices\nOolong is 4 EUR.\n\n```\n# not a heading\n```\n\nSencha is 5 EUR.\n"
    ),
    "Projects/Budget.md": b"| what | EUR |\n|---|---|\n| [[Plan\\|the plan]] | 900 |\n",
    "Projects/Archive/Plan.md": b"An older plan, which lies deeper? No: as deep. Bamboo.\n",
    "Projects/Archive/2024/Old/Deep note.md": b"Deep down. [[Plan]]\n",
    "People/Alice.md": b"---\nborn: 1990-04-01\ntags: friend, tea\n---\nAlice drinks sencha. [web](https://example.org/a)\n",
    "People/Bob Stone.md": b"---\nalias: none\n# a comment\ndate: 2025-12-24\n---\n\nBob carves stone.\n",
    "People/index.md": b"People: [[Alice]].\n",
    "Daily/2026-03-01.md": (
        b"---\ndate: 2026-03-01T07:30\n---\n- [ ] call [[Alice]] #todo\n- [x] water plants\n"
    ),
    "Daily/2026-03-02.md": b"Rain. %%hidden aside%% <!-- comment --> ~~not this~~\n",
    "Books/Dune.md": b"---\n---\nSpice and sand.\n",
    "Books/Solaris.md": (
        b"---\ntags: []\ncssclasses: wide\n---\n\n\nAn ocean that thinks. ^block\n\nSee [[Dune#^block]].\n"
    ),
    "Books/No space after hash.md": b"#tag at the start, #another here\n#not-a-heading\n",
    "templates/note.md": b"# {{title}}\n\n{{date}}\n",
    "mixed/with entries.md": (
        b"A note that an agent wrote to before.\n\n## [2026-01-01 10:00] {id: old-1} #memo\nFirst entry.\n\n"
        b"## [2026-01-02 10:00] {id: old-2}\n~~Second entry.~~ #superseded-by:old-3\n\n"
        b"## [2026-01-03 10:00] {id: old-3}\nThird entry.\n"
    ),
}
#: Files that are no notes.
OTHERS: dict[str, bytes] = {
    ".obsidian/app.json": b"{}",
    ".obsidian/plugins/x/README.md": b"hidden plugin pagoda",
    ".trash/Gone.md": b"hidden trash pagoda",
    ".git/HEAD": b"ref: refs/heads/main",
    ".hidden.md": b"hidden file pagoda",
    "attachments/cover.png": b"\x89PNG\r\n",
    "attachments/paper.pdf": b"%PDF",
    "board.canvas": b"{}",
}


def make_vault(root: Path) -> Path:
    """Make the vault in a folder, and return that."""
    for way, content in {**NOTES, **OTHERS}.items():
        (root / way).parent.mkdir(parents=True, exist_ok=True)
        (root / way).write_bytes(content)
    return root


def contents(root: Path) -> dict[str, bytes]:
    """Return all files below a folder, those of a store left out."""
    paths = (path for path in root.rglob("*") if ".chronomemory" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths if path.is_file()}
