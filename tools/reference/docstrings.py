"""Docstrings as Markdown."""

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from griffe import Docstring, DocstringSection, DocstringSectionKind, Object

Sections: TypeAlias = dict[DocstringSectionKind, Any]
"""Sections of a docstring by kind; under `text` a list of those that are prose."""

TITLES = {DocstringSectionKind.returns: "Returns", DocstringSectionKind.yields: "Yields"}
_ITEM = re.compile(r"^(\w+(?:, \w+)*): (.*(?:\n +.*)*)", re.MULTILINE)
_LISTS = {
    *TITLES,
    DocstringSectionKind.parameters,
    DocstringSectionKind.attributes,
    DocstringSectionKind.raises,
}


def sections_of(thing: Object) -> Sections:
    """Return the sections of an object's docstring; none without one."""
    if thing.docstring is None:
        return {}
    parsed = thing.docstring.parsed
    found: Sections = {section.kind: section for section in parsed if section.kind in _LISTS}
    found[DocstringSectionKind.text] = [each for each in parsed if each.kind not in _LISTS]
    return found


def prose(sections: Sections) -> Iterator[str]:
    """Yield the paragraphs and examples that are in no list."""
    for section in sections.get(DocstringSectionKind.text, []):
        if not _named_texts(section):
            yield from _blocks(section)


def titled_lists(sections: Sections) -> Iterator[str]:
    """Yield the lists of names and texts that have a title of their own."""
    for section in sections.get(DocstringSectionKind.text, []):
        lines = [f"- **{names}**: {text}" for names, text in _named_texts(section)]
        if lines:
            yield f"{section.title}:\n\n" + "\n".join(lines)


def shared_texts(thing: Object, title: str) -> dict[str, str]:
    """Return the texts of a list with this title; `id, ids: …` is the text of both."""
    for section in sections_of(thing).get(DocstringSectionKind.text, []):
        if section.title == title:
            found = _named_texts(section)
            return {name: text for names, text in found for name in names.split(", ")}
    return {}


def _named_texts(section: DocstringSection) -> list[tuple[str, str]]:
    if section.kind is not DocstringSectionKind.admonition:
        return []
    return [(names, one_line(text)) for names, text in _ITEM.findall(section.value.description)]


def _blocks(section: DocstringSection) -> Iterator[str]:
    if section.kind is DocstringSectionKind.text:
        yield _with_lists_apart(section.value)
    elif section.kind is DocstringSectionKind.examples:
        yield from (_example(text) if ">>>" in text else text for _, text in section.value)
    else:
        text = section.value.description
        yield _example(text) if ">>>" in text else text


def _example(text: str) -> str:
    return f"```pycon\n{text.replace('  # doctest: +SKIP', '').strip()}\n```"


def _with_lists_apart(text: str) -> str:
    """Put an empty line before a list, without which Markdown takes it for a paragraph."""
    return re.sub(r"^([^-\s].*)\n(?=- )", r"\1\n\n", text, count=1, flags=re.MULTILINE).strip()


def text_of(docstring: Docstring | None) -> str:
    """Return a short docstring in one line."""
    if docstring is None or docstring.parent is None:
        return ""
    return one_line("\n\n".join(prose(sections_of(docstring.parent))))


def items(sections: Sections, kind: DocstringSectionKind) -> dict[str, str]:
    """Return the texts of parameters or attributes by name."""
    found = getattr(sections.get(kind), "value", ())
    return {item.name.lstrip("*"): one_line(item.description) for item in found}


def one_line(text: str) -> str:
    """Return a text without line breaks."""
    return " ".join(text.split())


def fenced(code: str) -> str:
    """Return a signature as a block."""
    return f"```pyi\n{code}\n```"
