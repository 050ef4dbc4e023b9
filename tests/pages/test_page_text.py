"""Every page comes back byte for byte, and no content can become anything but content."""

from __future__ import annotations

import pytest
from chronomemory.pages import NotAPage
from chronomemory.pages.text import frontmatter
from chronomemory.pages.text.entries import EntryText, escape, moment_of, read_entry, spell_entry, unescape
from chronomemory.pages.text.frontmatter import (
    edit,
    is_plain,
    new_frontmatter,
    read_meta,
    read_spelled,
    read_values,
)
from chronomemory.pages.text.links import links_in
from chronomemory.pages.text.page import read_page, title_of
from hypothesis import given, settings
from hypothesis import strategies as st
from page_samples import CONTENTS, PIECES, SEED, TAGS, TEXTS

#: What YAML makes of a value is often not what it looks like.
VALUES = (
    *(
        "true",
        "yes",
        "0",
        "12",
        "007",
        "1e3",
        "~",
        "nan",
        "null",
        "a",
        "a b",
        "a #b",
        "a: b",
        "{a: b}",
        "'a'",
    ),
    *("[a, b]", "[]", "[1, a]", '["1", a]', '["a, b"]', "[yes]", '"a: b"', '"\u2028"', "\u6f22", "a\u00a0b"),
    *("2026-04-20", "2026-04-20T14:02:11+08:00", "2026-02-30T14:02:11+08:00", "2026-04-20T14:02:11-00:00"),
)
FEW = settings(max_examples=80, deadline=None)
EOLS = st.sampled_from(["\n", "\r\n"])


def test_the_page_of_the_seed_is_read_and_spelled_again() -> None:
    page = read_page(SEED)
    assert page.text == SEED
    assert page.meta.description == "Identity and background of the user"
    assert (page.meta.tags, page.meta.state) == (("identity", "background"), "active")
    assert title_of(page.head) == "User Profile"
    first, struck, last = page.entries
    assert first.content == "User goes by Kming. Based in Shanghai."
    assert (struck.superseded, struck.superseded_by) == (True, last.entry_id)
    assert struck.content == "User works at Old Corp as a principal engineer."
    assert last.tags == ("work", "employer") and not last.superseded


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "\n", "\n\n\n", "   \n"])
@pytest.mark.parametrize(
    "front", ["", "---\n# a comment\nx: [1,\n  2]\n---\n", "---\n---\n", "\ufeff---\na: 1\n---\n"]
)
def test_pages_of_any_make_come_back_byte_for_byte(eol: str, tail: str, front: str) -> None:
    entries = "## [2026-01-01 10:00] {id: a}\n\n\nx\n## [2026-01-01T10:00Z] {id:b} #t rest\ny"
    text = f"{front}text\n\n\n{entries}{tail}"
    text = text.replace("\n", eol)
    page = read_page(text)
    assert page.text == text
    assert [(entry.entry_id, entry.content.strip()) for entry in page.entries] == [("a", "x"), ("b", "y")]


@FEW
@given(TEXTS)
def test_any_text_is_read_without_losing_a_byte(text: str) -> None:
    try:
        page = read_page(text)
    except NotAPage:
        return
    assert page.text == text


@FEW
@given(CONTENTS, TAGS, EOLS, st.booleans(), st.none() | TEXTS)
def test_any_content_survives_and_stays_one_entry(
    content: str, tags: list[str], eol: str, is_struck: bool, reason: str | None
) -> None:
    entry = EntryText("id-1", "2026-04-20T14:02:11", tuple(dict.fromkeys(tags)), content)
    if is_struck:
        entry = entry.struck("id-2", reason)
    raw = spell_entry(entry, eol)
    assert read_entry(raw, eol) == entry
    other = EntryText("id-3", "2026-04-20T14:02:12", ("b",), "another")
    text = f"---{eol}a: b{eol}---" + raw + spell_entry(other, eol) + eol
    page = read_page(text)
    assert page.text == text
    assert page.entries == [entry, other]


@FEW
@given(TEXTS)
def test_escaping_is_taken_back(text: str) -> None:
    assert unescape(escape(text)) == text
    assert "~~" not in escape(text)


def test_every_two_pieces_together_stay_content() -> None:
    for one in PIECES:
        for other in PIECES:
            content = f"{one}{other}"
            if content.strip():
                entry = EntryText("id", "2026-04-20T14:02:11", ("a",), content)
                page = read_page(
                    "x"
                    + spell_entry(entry, "\n")
                    + spell_entry(entry.struck("b", one), "\n").replace("id: id", "id: b")
                )
                assert [read.content for read in page.entries] == [content, content]
                assert [read.superseded for read in page.entries] == [False, True]


def test_a_word_that_a_person_struck_does_not_strike_the_entry() -> None:
    text = "## [2026-01-01 10:00] {id: a}\n~~one~~ and ~~two~~\n"
    (entry,) = read_page(text).entries
    assert (entry.superseded, entry.content) == (False, "~~one~~ and ~~two~~")


@pytest.mark.parametrize(
    "line",
    [
        "## [2026-13-01 10:00] {id: a}",
        "## [yesterday] {id: a}",
        "## [2026-01-01 10:00] {id: a b}",
        "### [2026-01-01 10:00] {id: a}",
        " ## [2026-01-01 10:00] {id: a}",
        "text ## [2026-01-01 10:00] {id: a}",
    ],
)
def test_what_is_no_heading_is_text(line: str) -> None:
    assert read_page(f"# T\n\n{line}\nx\n").entries == []


@pytest.mark.parametrize(
    "spelled",
    [
        "2026-04-20T14:02",
        "2026-04-20 14:02:11",
        "2026-04-20T14:02:11Z",
        "2026-04-20T14:02+0800",
        "2026-04-20T14:02:11.5",
    ],
)
def test_moments_are_read_with_and_without_seconds_and_zones(spelled: str) -> None:
    moment = moment_of(spelled)
    assert moment is not None and (moment.hour, moment.minute) == (14, 2)


def _meta_or_reason(head: str) -> object:
    try:
        return read_meta(head)
    except NotAPage as error:
        return str(error), error.line


class TestTheFrontmatter:
    @FEW
    @given(TEXTS, TAGS)
    def test_any_description_survives(self, description: str, tags: list[str]) -> None:
        meta = read_meta(new_frontmatter({"description": description, "tags": tags, "status": "active"}))
        assert meta.description == description
        assert meta.tags == tuple(dict.fromkeys(tags))

    def test_changing_a_value_changes_nothing_else(self) -> None:
        head = read_page(SEED).head
        changed, plain = edit(head, {"entry_count": 3, "status": "dormant"}, plain=False, eol="\n")
        assert plain
        assert changed == head.replace("entry_count: 4", "entry_count: 3").replace(
            "status: active    ", "status: dormant    "
        )

    @pytest.mark.parametrize(
        "yaml",
        [
            "{a: 1, updated: 2026-01-01}",
            "updated: 2026-01-01\na: |\n  updated: no\n",
            'a: "updated: x"\n"updated": 2026-01-01',
            "updated:\n  2026-01-01\nb: 'x # y'",
            "updated: 2026-01-01 # seen\nlist:\n- one\n-   two\n",
            "b: 'it''s'\nupdated: '2026-01-01'",
            "x: 1",
            "# nothing but a comment",
        ],
    )
    @pytest.mark.parametrize("eol", ["\n", "\r\n"])
    def test_a_key_is_changed_however_it_is_written(self, yaml: str, eol: str) -> None:
        head = f"---\n{yaml.strip()}\n---\n# T".replace("\n", eol)
        before = read_values(head)
        changed, _ = edit(head, {"updated": "2026-05-01T00:00:00+02:00"}, plain=False, eol=eol)
        after = read_values(changed)
        assert str(after.pop("updated")).startswith("2026-05-01")
        before.pop("updated", None)
        assert after == before
        assert changed.endswith(f"---{eol}# T")
        assert ("#" in yaml) == ("#" in changed.removesuffix("# T"))

    @pytest.mark.parametrize(
        ("yaml", "plain"),
        [
            ("a: 1\n# x\n\nb: [x, y-z] # c\nc: 'it''s'\nd: \"e: \\\\ f\"\nupdated: 2026-01-01", True),
            ("a:\n- 1", False),
            ("a: |\n  b", False),
            ("a: 'b\n  c'", False),
            ("{a: 1}", False),
            ("a: {b: 1}", False),
            ("a: [b,\n  c]", False),
            ("'a': 1", False),
            ("? a\n: b", False),
            ("a: b\n  c", False),
        ],
    )
    def test_a_plain_one_is_changed_line_by_line(self, yaml: str, plain: bool) -> None:
        head = f"---\n{yaml}\n---"
        assert is_plain(head) is plain
        changes = {"updated": "2026-05-01T00:00:00+02:00", "entry_count": 7, "needs_compact": True}
        sure, _ = edit(head, changes, plain=False, eol="\n")
        quick, _ = edit(head, changes, plain=plain, eol="\n")
        assert quick == sure
        assert {name: read_values(quick)[name] for name in ("entry_count", "needs_compact")} == {
            "entry_count": 7,
            "needs_compact": True,
        }

    def test_a_page_without_one_is_given_one(self) -> None:
        changed, plain = edit("# T", {"status": "active", "compact_reason": None}, plain=False, eol="\n")
        assert (changed, plain) == ("---\nstatus: active\n---\n\n# T", True)

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("---\na: [\nb: 1\n---\n", 4),
            ("---\na: 1\na: 2\n---\n", 3),
            ("---\n- 1\n---\n", 2),
            ("---\na: 1\n", 1),
            ("---\na: \x00\n---\n", None),
            ("---\n" + "[" * 3000 + "\n---\n", 2),
            ("---\na: " + "x" * 70_000 + "\n---\n", 1),
        ],
    )
    def test_a_broken_one_is_named_with_its_line(self, text: str, line: int | None) -> None:
        with pytest.raises(NotAPage) as caught:
            read_page(text)
        assert line is None or caught.value.line == line

    @pytest.mark.parametrize("key", ["description", "tags", "created", "status", "entry_count", "y"])
    def test_what_is_read_without_yaml_is_what_yaml_says(
        self, key: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        heads = [f"---\n{key}: {value}\n---" for value in VALUES]
        quick = [head for head in heads if read_spelled(f"{head[4:-3]}") is not None]
        assert len(quick) > 5 or key == "y"
        read = [(_meta_or_reason(head), list(read_values(head))) for head in quick]
        monkeypatch.setattr(frontmatter, "read_spelled", lambda _: None)
        assert read == [(_meta_or_reason(head), list(read_values(head))) for head in quick]

    def test_what_we_spell_is_read_without_yaml(self) -> None:
        values = {"description": "a: b, c", "tags": ["x/y", "1"], "entry_count": 2, "needs_compact": False}
        assert read_spelled(new_frontmatter(values)[4:-3]) == values

    def test_two_entries_with_one_id_are_no_page(self) -> None:
        with pytest.raises(NotAPage, match="two entries have the id a"):
            read_page("## [2026-01-01 10:00] {id: a}\nx\n\n## [2026-01-01 10:01] {id: a}\ny\n")

    def test_what_makes_no_sense_has_its_usual_value(self) -> None:
        meta = read_meta("---\nstatus: asleep\ntags: one two\nneeds_compact: 'yes'\nupdated: 2026-01-02\n---")
        assert (meta.state, meta.tags, meta.needs_compact) == ("active", ("one", "two"), False)
        assert meta.updated == "2026-01-02T00:00:00"


@pytest.mark.parametrize(
    "content",
    [
        "x" * 300_000,
        "\\" * 300_000 + "z",
        "~" * 300_000,
        "`" * 300_000 + "\rz",
        "[x](a" + " " * 300_000 + "(",
        "[[a]] http://b " * 20_000,
        "a+" * 150_000 + "://",
    ],
    ids=["word", "backslashes", "tildes", "ticks", "blanks", "links", "scheme"],
)
def test_the_work_grows_with_a_text_and_no_faster(content: str) -> None:
    # Any of these took minutes or hours while it grew with the square.
    assert unescape(escape(content)) == content
    assert len(links_in(content)) <= 2
