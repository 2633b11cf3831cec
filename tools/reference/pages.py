"""The pages, put together."""

import re
from collections.abc import Iterable, Iterator

from griffe import Attribute, Class, DocstringSectionKind, ExprSubscript, Function, Object

from tools.reference.docstrings import (
    TITLES,
    Sections,
    fenced,
    items,
    one_line,
    prose,
    sections_of,
    shared_texts,
    text_of,
    titled_lists,
)
from tools.reference.names import TEXTS, Names, index, takes_shared
from tools.reference.page_list import PAGES, SHARED, SHARED_TITLE, Page
from tools.reference.source import (
    ERRORS,
    Public,
    annotation_text,
    constructor_of,
    enum_members,
    fields_of,
    is_plain,
    is_property,
    methods_and_properties,
    object_at,
    parameters_of,
    signature_of,
    target,
    unreadable_docstrings,
    value_text,
)

_LONGEST_VALUE = 100
_PROTOCOLS = {
    "__len__": "`len()`",
    "__iter__": "iteration",
    "__getitem__": "indexing",
    "__contains__": "`in`",
    "__call__": "calls",
    "__enter__": "`with`",
    "__aenter__": "`async with`",
}


class Reference:
    """All pages of the reference.

    Attributes:
        problems: Names, methods and parameters without a text, and names without a page.
    """

    def __init__(self) -> None:
        self._unreadable = unreadable_docstrings()
        self._names = Names()
        self._shared = shared_texts(object_at(self._names.package, SHARED), SHARED_TITLE)
        self._written: dict[str, tuple[str, str]] = {}
        self.problems = [f"{name}: no page of tools/reference" for name in self._names.homeless]

    def pages(self) -> dict[str, str]:
        """Return the text of each page by the name of its file."""
        texts = {page.file: _linked("\n\n".join(filter(None, self._page(page)))) for page in PAGES}
        self.problems += self._unreadable
        return {"README.md": "\n".join(index(self._names)) + "\n", **texts}

    def _page(self, page: Page) -> Iterator[str]:
        names = self._names.by_page[page.file]
        yield f"# {page.title}"
        yield f"[Reference](README.md). {page.about}"
        yield " · ".join(f"[{public.name}](#{public.name.lower()})" for public in names)
        for public in names:
            yield f"## {_title(public.name)}"
            yield f"`from {public.module} import {public.name}`"
            yield from self._described(public, page)

    def _described(self, public: Public, page: Page) -> Iterator[str]:
        thing = public.object
        if isinstance(thing, Class):
            yield from self._class(public, thing, page)
        elif isinstance(thing, Function):
            yield from self._function(public.name, public.name, thing)
        elif isinstance(thing, Attribute):
            yield from self._value(public, thing)

    def _needed(self, text: str | None, name: str) -> str:
        """Return a text, and note where there is none."""
        if not text:
            self.problems.append(f"{name} has no text")
        return text or ""

    def _value(self, public: Public, thing: Attribute) -> Iterator[str]:
        value = "" if thing.value is None else value_text(thing.value)
        other = self._names.link(f"{ERRORS}.{value}") if public.module == ERRORS else None
        if other:
            yield f"Another name of {other}."
            return
        is_alias = isinstance(thing.value, ExprSubscript)
        if is_alias or 0 < len(value) <= _LONGEST_VALUE:
            yield fenced(f"{public.name} = {value}")
        elif thing.annotation is not None:
            yield fenced(f"{public.name}: {annotation_text(thing.annotation)}")
        yield self._needed(text_of(thing.docstring), public.name)

    # Classes

    def _class(self, public: Public, thing: Class, page: Page) -> Iterator[str]:
        sections = sections_of(thing)
        constructor = constructor_of(thing) if public.is_constructed else None
        yield self._bases(thing)
        if constructor is not None:
            yield fenced(signature_of(public.name, constructor, returns=False))
        self._needed(text_of(thing.docstring), public.name)
        yield from prose(sections)
        if constructor is not None:
            texts = self._names.texts(constructor.parent or thing, *TEXTS)
            texts |= self._names.texts(thing, *TEXTS)
            yield self._parameters(public.name, constructor, texts)
        yield from titled_lists(sections)
        yield self._fields(public.name, thing, items(sections, DocstringSectionKind.attributes))
        yield self._raises(sections)
        yield from self._members(public, thing, page)

    def _bases(self, thing: Class) -> str:
        paths = [getattr(base, "canonical_path", str(base)) for base in thing.bases]
        is_error = thing.module.canonical_path == ERRORS
        found = [
            self._names.link(path) or (f"`{path}`" if is_error and path.endswith("Error") else None)
            for path in paths
        ]
        kinds = [kind for kind in found if kind]
        return f"A kind of {' and '.join(kinds)}." if kinds else ""

    def _fields(self, owner: str, thing: Class, texts: dict[str, str]) -> str:
        members = enum_members(thing)
        if members is not None:
            return _enum(members)
        lines = [
            self._field(owner, thing, field, texts.get(name))
            for name, field in fields_of(thing).items()
        ]
        lines += [
            f"- **{name}**: {text}" for name, text in texts.items() if _is_set_by_hand(thing, name)
        ]
        return "Fields:\n\n" + "\n".join(lines) if lines else ""

    def _field(self, owner: str, thing: Class, field: Attribute, text: str | None) -> str:
        name = field.name
        own = text or text_of(field.docstring) or self._text_of_bases(thing, name)
        like = self._names.texts(thing, *TEXTS).get(name)
        found = own or like or self._shared_text(thing, name)
        default = "" if field.value is None else f" = {value_text(field.value)}"
        kind = annotation_text(field.annotation)
        return f"- **{name}** `{kind}{default}`: {self._needed(found, f'{owner}.{name}')}"

    def _text_of_bases(self, thing: Class, name: str) -> str | None:
        texts = [items(sections_of(base), DocstringSectionKind.attributes) for base in thing.mro()]
        return next((each[name] for each in texts if name in each), None)

    def _members(self, public: Public, thing: Class, page: Page) -> Iterator[str]:
        marks = [mark for name, mark in _PROTOCOLS.items() if _is_supported(thing, name)]
        if marks:
            yield f"Supports {', '.join(marks)}."
        members = list(methods_and_properties(thing))
        elsewhere = [each for each in members if each[1].canonical_path in self._written]
        own = [each for each in members if each not in elsewhere]
        yield self._properties(public, thing, [each for each in own if is_property(each[1])], page)
        yield from self._written_elsewhere(elsewhere)
        for name, method in own:
            if isinstance(method, Function) and not is_property(method):
                title = f"{public.name}.{name}"
                self._written[method.canonical_path] = public.name, _place(page, title)
                yield f"### {title}"
                yield from self._function(name, title, method, is_plain=is_plain(thing, name))

    def _properties(
        self, public: Public, thing: Class, found: list[tuple[str, Object]], page: Page
    ) -> str:
        texts = items(sections_of(thing), DocstringSectionKind.attributes)
        lines = []
        for name, member in found:
            self._written[member.canonical_path] = public.name, _place(page, public.name)
            text = text_of(member.docstring) or texts.get(name)
            kind = getattr(member, "annotation", None) or getattr(member, "returns", None)
            shown = f"**{name}** `{annotation_text(kind)}`"
            lines.append(f"- {shown}: {self._needed(text, f'{public.name}.{name}')}")
        return "Properties:\n\n" + "\n".join(lines) if lines else ""

    def _written_elsewhere(self, found: Iterable[tuple[str, Object]]) -> Iterator[str]:
        by_owner: dict[str, list[str]] = {}
        for name, member in found:
            owner, place = self._written[member.canonical_path]
            by_owner.setdefault(owner, []).append(f"[`{name}`]({place})")
        for owner, links in by_owner.items():
            yield f"As in `{owner}`: {', '.join(sorted(links))}."

    # Functions

    def _function(
        self, name: str, title: str, function: Function, *, is_plain: bool = False
    ) -> Iterator[str]:
        sections = sections_of(function)
        signature = signature_of(name, function)
        yield fenced(signature.removeprefix("async ") if is_plain else signature)
        self._needed(text_of(function.docstring), title)
        yield from prose(sections)
        texts = self._names.texts(function, DocstringSectionKind.parameters)
        yield self._parameters(title, function, texts)
        yield from titled_lists(sections)
        for kind, word in TITLES.items():
            if kind in sections:
                text = " ".join(item.description for item in sections[kind].value)
                yield f"**{word}** {one_line(text)}"
        yield self._raises(sections)
        types = self._names.links_of(function)
        yield f"Types: {', '.join(types)}." if types else ""

    def _parameters(self, owner: str, function: Function, texts: dict[str, str]) -> str:
        return "\n".join(
            f"- **{each.name}**: "
            + self._needed(
                texts.get(each.name) or self._shared_text(function, each.name),
                f"{owner}({each.name})",
            )
            for each in parameters_of(function)
        )

    def _shared_text(self, thing: Object, name: str) -> str | None:
        return self._shared.get(name) if takes_shared(thing, name) else None

    def _raises(self, sections: Sections) -> str:
        if DocstringSectionKind.raises not in sections:
            return ""
        lines = []
        for item in sections[DocstringSectionKind.raises].value:
            name = str(item.annotation)
            link = self._names.link(f"{ERRORS}.{name}") or f"`{name}`"
            lines.append(f"- {link}: {one_line(item.description)}")
        return "**Raises**\n\n" + "\n".join(lines)


def _is_set_by_hand(thing: Class, name: str) -> bool:
    """Whether a documented attribute is set by the constructor, so that no field declares it."""
    member = thing.all_members.get(name)
    return name not in fields_of(thing) and not (member and is_property(target(member)))


def _linked(text: str) -> str:
    """Return a page in which other pages that docstrings name are links."""
    return re.sub(r"\bdocs/([\w/-]+)\.md", r"[\1](../../\1.md)", text) + "\n"


def _enum(members: list[Attribute]) -> str:
    texts = [(member.name, text_of(member.docstring)) for member in members]
    if any(text for _, text in texts):
        return "\n".join(f"- **{name}**: {text}" for name, text in texts)
    return "Members: " + ", ".join(f"`{name}`" for name, _ in texts) + "."


def _title(name: str) -> str:
    """Return a name as a title, underscores at its ends as they are."""
    return f"`{name}`" if name.startswith("_") else name


def _place(page: Page, title: str) -> str:
    return f"{page.file}#{re.sub(r'[^a-z0-9_]', '', title.lower())}"


def _is_supported(thing: Class, name: str) -> bool:
    """Return whether a class has a method that can return; some only raise an error with advice."""
    method = thing.all_members.get(name)
    return method is not None and str(getattr(method, "returns", None)) != "NoReturn"
