"""The public names by page, links to them, and the texts that docstrings refer to."""

from collections.abc import Iterator

import griffe
from griffe import DocstringSectionKind, Function, Object

from tools.reference.docstrings import items, sections_of
from tools.reference.page_list import LIKE, PAGES, SCOPE, SHARED_BY, Page
from tools.reference.source import (
    ALIASES,
    PACKAGE,
    Public,
    loaded_package,
    names_in,
    object_at,
    public_names,
    target,
)

TEXTS = (DocstringSectionKind.attributes, DocstringSectionKind.parameters)
"""What describes an argument of a constructor, and the attribute that keeps it."""


class Names:
    """All public names.

    Attributes:
        package: The package.
        by_page: The public names of each page, by its file.
        homeless: Public names without a page.
    """

    def __init__(self) -> None:
        self.package = loaded_package()
        self.by_page: dict[str, list[Public]] = {page.file: [] for page in PAGES}
        self.homeless: list[str] = []
        self._places: dict[str, str] = {}
        for public in public_names(self.package):
            self._place(public)
        for page in PAGES:
            self.by_page[page.file].sort(key=lambda public, page=page: _order(public, page))  # type: ignore[misc]

    def _place(self, public: Public) -> None:
        fitting = [
            (len(source), page.file)
            for page in PAGES
            for source in page.sources
            if _is_within(public.path, source)
        ]
        if not fitting:
            self.homeless.append(public.name)
            return
        file = max(fitting)[1]
        self.by_page[file].append(public)
        self._places[public.path] = f"{file}#{public.name.lower()}"

    def link(self, path: str, name: str | None = None) -> str | None:
        """Return a link to a public name; None to another."""
        place = self._places.get(self._defined_at(path))
        return place and f"[`{name or path.rpartition('.')[2]}`]({place})"

    def links_of(self, function: Function) -> list[str]:
        """Return links to the public types of a signature, each once."""
        found = (self.link(name.canonical_path) for name in names_in(function))
        return list(dict.fromkeys(link for link in found if link))

    def _defined_at(self, path: str) -> str:
        if not path.startswith(PACKAGE):
            return path
        try:
            return object_at(self.package, path).canonical_path
        except (KeyError, griffe.AliasResolutionError):
            return path

    def texts(self, thing: Object, *kinds: DocstringSectionKind) -> dict[str, str]:
        """Return the texts of parameters or fields by name, with those referred to."""
        like = self._like(thing)
        texts = self.texts(like, *TEXTS) if like else {}
        for kind in kinds:
            texts |= items(sections_of(thing), kind)
        return texts

    def _like(self, thing: Object) -> Object | None:
        path = thing.canonical_path
        if path in LIKE:
            return object_at(self.package, LIKE[path])
        owner, _, name = path.rpartition(".")
        other = object_at(self.package, LIKE[owner]) if owner in LIKE else None
        return target(other.members[name]) if other and name in other.members else None


def takes_shared(thing: Object, name: str) -> bool:
    """Return whether an argument or field may have the text that many calls share."""
    return name in SCOPE or any(_is_within(thing.canonical_path, room) for room in SHARED_BY)


def _is_within(path: str, source: str) -> bool:
    return f"{path}.".startswith(f"{source}.")


def _order(public: Public, page: Page) -> tuple[bool, int, str, int]:
    """Order names by the page's sources, then as they are defined; types of arguments come last."""
    first = next(n for n, source in enumerate(page.sources) if _is_within(public.path, source))
    module = public.object.module.canonical_path
    return (
        public.module == ALIASES or public.object.is_attribute,
        first,
        module,
        public.object.lineno or 0,
    )


def index(names: Names) -> Iterator[str]:
    """Yield the lines of the page of all names."""
    yield "# Reference\n"
    yield "Every public name. `make docs` builds these pages from signatures and docstrings.\n"
    for page in PAGES:
        links = [names.link(public.path, public.name) for public in names.by_page[page.file]]
        yield f"- **[{page.title}]({page.file})**. {page.about}"
        yield f"  {', '.join(link for link in links if link)}"
