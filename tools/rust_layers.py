"""Check that the components of the crates import each other, and their files, in one direction.

A component is a folder or a file at the top of a crate's ``src``. A path ``crate::component::…``
may lead to a lower layer alone; components that share a layer do not import each other. The files
of a component do not import each other in a circle. A ``mod.rs`` is in no circle: it names the
files of its folder, and what it declares itself is common to them. Run as a script in ``make
lint``: it prints each import that breaks a rule and exits with 1, else it prints nothing.

Tests inside a crate are left out: they may build what they check with components above.
"""

from __future__ import annotations

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

RUST = Path(__file__).parents[1] / "rust"

CORE = (
    ("lib",),
    ("memory_index", "vector_map"),
    ("rank",),
    ("search",),
    ("storage",),
    ("memory",),
    ("columns",),
    ("filter", "lexical", "simd"),
    ("quantization",),
    ("checksum", "collections", "deadline", "system", "text"),
    ("bits", "error", "ids", "memory_fields"),
)
EMBED = (
    ("encoder",),
    ("kernel",),
    ("forward",),
    ("scratch",),
    ("floats",),
    ("format",),
    ("counting", "error", "model_file"),
)
CRATES = {RUST / "core" / "src": CORE, RUST / "embed" / "src": EMBED}
"""The components of each crate from the top to the bottom."""

_COMMENT = re.compile(r"//[^\n]*")
_TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:#[^\n]*\n)*mod \w+ \{.*", re.MULTILINE | re.DOTALL)
_START = re.compile(r"\b(crate|self|super(?:::super)*)::(?=\w|\{)")
_EXPORT = re.compile(r"^pub(?:\([^)]*\))? use (?:self::)?(?!crate|super)(?=\w)", re.MULTILINE)
_PART = re.compile(r"\s*((?:\w+::)*)(\w+|[{*])(?:\s+as\s+(\w+))?")
_NEXT = re.compile(r"[\s,]*(\}?)")

Module = tuple[str, ...]
"""Names of a module, from the root of the crate on."""


def violations(source: Path, layers: tuple[tuple[str, ...], ...]) -> list[str]:
    """Return one sentence for each import, component or circle that breaks a rule."""
    heights = {component: -at for at, layer in enumerate(layers) for component in layer}
    crate = _Crate(source)
    found = []
    for module, path in crate.files.items():
        component = module[0]
        if component not in heights:
            found.append(f"{path}: component {component!r} is in no layer; list it")
        else:
            components = dict.fromkeys((line, target[0]) for line, target in crate.imports[module])
            found += [
                f"{path}:{line}: {component} imports {target}, {problem}"
                for line, target in components
                if (problem := _problem(component, target, heights))
            ]
    return found + crate.circles()


def _problem(component: str, target: str, heights: dict[str, int]) -> str:
    """Return why one component may not import another, empty where it may."""
    if target == component:
        return ""
    if target not in heights:
        return "which is in no layer"
    if heights[target] == heights[component]:
        return "which shares its layer"
    return "which lies above" if heights[target] > heights[component] else ""


class _Crate:
    """The modules of a crate but its root and its tests, and what they import.

    Attributes:
        files: The file of each module, below the source.
        imports: Line and target of each path in a module that names another.
    """

    def __init__(self, source: Path) -> None:
        paths = sorted(path.relative_to(source) for path in source.rglob("*.rs"))
        texts = {path: (source / path).read_text(encoding="utf-8") for path in paths}
        self._exports = {_module_of(path): _exports(text) for path, text in texts.items()}
        self.files = {_module_of(path): path for path in paths if path.stem not in {"lib", "tests"}}
        self.imports = {
            module: [
                (line, self._resolved(target)) for line, target in _imports(texts[path], module)
            ]
            for module, path in self.files.items()
        }

    def _resolved(self, path: Module) -> Module:
        """Return the module that a path leads to, through re-exports, or the name that is none."""
        module: Module = ()
        for name in path:
            while (*module, name) not in self.files:
                child = self._exports.get(module, {}).get(name)
                if child is None or (*module, child) not in self.files:
                    return module or (name,)
                module = (*module, child)
            module = (*module, name)
        return module

    def circles(self) -> list[str]:
        """Return a sentence for a circle in each component that has one."""
        found = []
        for component in sorted({module[0] for module in self.files}):
            files = {
                module
                for module, path in self.files.items()
                if module[0] == component and path.stem != "mod"
            }
            graph = {
                module: {target for _, target in self.imports[module] if target in files - {module}}
                for module in files
            }
            try:
                TopologicalSorter(graph).prepare()
            except CycleError as error:
                names = sorted({str(self.files[module]) for module in error.args[1]})
                found.append(f"{' and '.join(names)} import each other in a circle")
        return found


def _module_of(path: Path) -> Module:
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] in {"mod", "lib"} else parts


def _imports(text: str, module: Module) -> Iterator[tuple[int, Module]]:
    """Yield line and target, from the root of the crate on, of each path in a module."""
    code = _TESTS.sub("", _COMMENT.sub("", text))
    for match in _START.finditer(code):
        base = () if match[1] == "crate" else module[: len(module) - match[1].count("super")]
        line = code.count("\n", 0, match.start()) + 1
        yield from ((line, (*base, *path)) for path, _ in _tree(code, match.end())[0])


def _exports(text: str) -> dict[str, str]:
    """Return the child of a module that has each of the names which the module re-exports."""
    code = _COMMENT.sub("", text)
    trees = [_tree(code, match.end())[0] for match in _EXPORT.finditer(code)]
    return {name: path[0] for tree in trees for path, name in tree if len(path) > 1}


def _tree(code: str, at: int) -> tuple[list[tuple[Module, str]], int]:
    """Return the paths of a tree of imports, each with the name that it gives, and their end."""
    part = _PART.match(code, at)
    if part is None:
        return [], len(code)
    names, at = tuple(part[1].split("::")[:-1]), part.end()
    if part[2] != "{":
        return [((*names, part[2]), part[3] or part[2])], at
    paths: list[tuple[Module, str]] = []
    while (after := _NEXT.match(code, at)) and not after[1] and after.end() < len(code):
        inner, at = _tree(code, after.end())
        paths += [((*names, *path), name) for path, name in inner]
    return paths, after.end() if after else at


if __name__ == "__main__":
    problems = [each for source, layers in CRATES.items() for each in violations(source, layers)]
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    sys.exit(bool(problems))
