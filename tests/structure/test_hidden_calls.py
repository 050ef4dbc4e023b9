"""Calls lead no file of the engine back to itself, also where no ``use`` line shows them.

A method may stand in any file of its crate, and whoever calls it names no file. So the methods of each type
are looked up, and a file leads to those whose methods it calls: on ``self``, on a variable that is said to be
of the type or bears its name, on a field. Together with the ``use`` lines that must not lead round, and a
type is not to be spread over many files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import pytest
from engine_files import ENGINE, files_of
from test_circles import arrows, circle, name_of

#: A type has methods in no more files than these: as many as it has today. ``Store`` once had 42.
MOST_FILES = {"Store": 11, "State": 10}
MOST_FILES_OF_OTHERS = 9

IMPL = re.compile(r"^[ \t]*(?:unsafe )?impl\b", re.MULTILINE)
METHOD = re.compile(r"[{}]|\bfn\s+(\w+)")
#: Text, characters and comments: nothing is called in them.
SILENT = re.compile(
    r"""//[^\n]*|b?r(?P<mark>\#*)".*?"(?P=mark)|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n]{1,9}?|[^\\\n])'""",
    re.DOTALL,
)
FIELD = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(\w+): ([^\n]+),$", re.MULTILINE)
#: A call: on what, on which field of that, and of which method.
CALL = re.compile(r"\b([A-Za-z_]\w*)\s*(?:(?:\.\s*(\w+)\s*)?\.|::)\s*(\w+)\s*(?:::<[^()]*>)?\(")
#: The code of each file, by its name.
Texts = dict[str, str]
#: In which files each method of each type stands.
Methods = dict[str, dict[str, set[str]]]
#: Of which types each field of each type is made.
Fields = dict[str, dict[str, list[str]]]


def ended(code: str, start: int) -> int:
    """Return where the braces end that begin at a place."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return len(code)


def code_of(text: str) -> str:
    """Return what is compiled into the engine: no words, and no tests."""
    code = SILENT.sub('""', text)
    while test := re.search(r"#\[cfg\(test\)\][^{;]*[{;]", code):
        end = ended(code, test.end() - 1) if test[0].endswith("{") else test.end()
        code = code[: test.start()] + code[end + 1 :]
    return code


def without_bounds(head: str) -> str:
    """Return the head of an ``impl`` without what stands in its angle brackets."""
    before = ""
    while before != head:
        before, head = head, re.sub(r"<[^<>]*>", "", head.replace("->", ""))
    return head.partition(" where ")[0]


def impls(code: str) -> Iterator[tuple[str, bool, str]]:
    """Yield each type that has an ``impl`` here, whether that is its own, and what stands in it."""
    for begin in IMPL.finditer(code):
        brace = code.index("{", begin.end())
        head, of_trait, type_of_trait = without_bounds(code[begin.end() : brace]).partition(" for ")
        name = re.match(r"[\s&']*(?:mut )?(?:\w+::)*(\w+)", type_of_trait if of_trait else head)
        if name:
            yield name[1], not of_trait, code[brace + 1 : ended(code, brace)]


def methods(texts: Texts) -> Methods:
    """Return in which files the methods of each type stand."""
    found: Methods = defaultdict(lambda: defaultdict(set))
    for module, code in texts.items():
        for name, is_own, inside in impls(code):
            depth = 0
            for part in METHOD.finditer(inside):
                depth += {"{": 1, "}": -1}.get(part[0], 0)
                if part[1] and depth == 0 and is_own:
                    found[name][part[1]].add(module)
    return found


def spelled(name: str) -> str:
    """Return what a variable of a type is called: ``LiveLog`` is ``live_log``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def fields(texts: Texts, known: Methods) -> Fields:
    """Return which types with methods a field of each type is made of."""
    found: Fields = defaultdict(dict)
    for code in texts.values():
        for struct in re.finditer(r"\bstruct (\w+)[^{;(]*\{", code):
            inside = code[struct.end() : ended(code, struct.end() - 1)]
            for field, kind in FIELD.findall(inside):
                found[struct[1]][field] = [name for name in re.findall(r"\w+", kind) if name in known]
    return found


def calls(code: str, known: Methods, parts: Fields) -> Iterator[tuple[str, str]]:
    """Yield the methods that are called in a file, each with its type."""
    types = {spelled(name): name for name in known} | {name: name for name in known}
    said = re.findall(r"\b(\w+): &?(?:'\w+ )?(?:mut )?(\w+)\b", code)
    types |= {variable: name for variable, name in said if name in known}
    for name, _, inside in [*impls(code), ("", False, code)]:
        for call in CALL.finditer(inside):
            first, field, method = call.groups()
            owner = name if first.lower() == "self" else types.get(first, "")
            if not field:
                yield owner, method
            else:
                yield from ((part, method) for part in parts.get(owner, {}).get(field, ()))
                yield types.get(field, ""), method


def hidden(texts: Texts) -> dict[str, set[str]]:
    """Return which files each calls methods of, of those that stand in one file alone."""
    known = methods(texts)
    parts = fields(texts, known)
    found: dict[str, set[str]] = {}
    for module, code in texts.items():
        called = (known.get(name, {}).get(method, set()) for name, method in calls(code, known, parts))
        found[module] = {end for files in called if len(files) == 1 for end in files} - {module}
    return found


@pytest.fixture(scope="module")
def texts() -> Texts:
    return {name_of(path): code_of(path.read_text(encoding="utf-8")) for path in files_of(ENGINE)}


def test_no_calls_lead_back_to_their_file(texts: Texts) -> None:
    graph = hidden(texts)
    assert sum(map(len, graph.values())) > 200
    assert circle(graph) == []


def test_nor_do_calls_and_names_together(texts: Texts) -> None:
    named = arrows(ENGINE)
    assert circle({module: ends | named[module] for module, ends in hidden(texts).items()}) == []


def test_no_type_is_spread_over_many_files(texts: Texts) -> None:
    spread = {name: len(set().union(*of.values())) for name, of in methods(texts).items()}
    limits = {name: MOST_FILES.get(name, MOST_FILES_OF_OTHERS) for name in spread}
    assert {name: files for name, files in spread.items() if files > limits[name]} == {}


def test_a_hidden_circle_is_seen() -> None:
    texts: Texts = {
        "one": code_of("impl<'a> Thing<'a> { fn go(&self) { self.stop(|| \"self.no()\") } } // self.no()"),
        "two": code_of("impl Thing<'_> { fn stop(&self) {} fn no(&self) {} }\n#[cfg(test)]\nmod a { x.y() }"),
        "three": code_of("fn all(it: &mut Thing, thing: u8) { it.stop(); it.rest() }"),
    }
    assert hidden(texts) == {"one": {"two"}, "two": set(), "three": {"two"}}
    texts["two"] += "impl Sink for Thing { fn take(&mut self) { Self::go(self) } }"
    assert circle(hidden(texts)) == ["one", "two"]
