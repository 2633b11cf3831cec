"""Check that the rooms of the core crate import each other in one direction only.

A room is a folder or a file at the top of ``rust/core/src``. A path ``crate::room::…`` may lead to
a lower layer alone; rooms that share a layer do not import each other. Run as a script in ``make
lint``: it prints each import that breaks a rule and exits with 1, else it prints nothing.

Tests inside the crate are left out: they may build what they check with rooms above.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parents[1] / "rust" / "core" / "src"

LAYERS = (
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
"""The rooms from the top to the bottom."""

_COMMENT = re.compile(r"//[^\n]*")
_TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:#[^\n]*\n)*mod \w+ \{.*", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"\b(crate|super(?:::super)*)::(\w+|\{)")
_EXPORT = re.compile(r"^pub use (\w+)::(?:\w+::)*(?:\{([^}]*)\}|(\w+));", re.MULTILINE)
_FIRST_NAME = re.compile(r"\s*(\w+)")


def violations(source: Path, layers: tuple[tuple[str, ...], ...]) -> list[str]:
    """Return one sentence for each import or room that breaks a rule, by path."""
    heights = {room: -at for at, layer in enumerate(layers) for room in layer}
    exports = _exports(source / "lib.rs")
    found = []
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        room = parts[0]
        if room not in heights:
            found.append(f"{path.relative_to(source)}: room {room!r} is in no layer; list it")
        elif parts[-1] != "tests" and room != "lib":
            found += [
                f"{path.relative_to(source)}:{line}: {room} imports {target}, {problem}"
                for line, target in _imports(path.read_text(encoding="utf-8"), parts, exports)
                if (problem := _problem(room, target, heights))
            ]
    return found


def _problem(room: str, target: str, heights: dict[str, int]) -> str:
    """Return why one room may not import another, empty where it may."""
    if target == room:
        return ""
    if target not in heights:
        return "which is in no layer"
    if heights[target] == heights[room]:
        return "which shares its layer"
    return "which lies above" if heights[target] > heights[room] else ""


def _imports(
    text: str, parts: tuple[str, ...], exports: dict[str, str]
) -> Iterator[tuple[int, str]]:
    """Yield line and room of each path of a file that begins at the root of the crate."""
    code = _TESTS.sub("", _COMMENT.sub("", text))
    depth = len(parts) - (parts[-1] == "mod")
    for match in _PATH.finditer(code):
        start, name = match.groups()
        if start == "crate" or start.count("super") == depth:
            line = code.count("\n", 0, match.start()) + 1
            names = _names_of_group(code, match.end()) if name == "{" else [name]
            yield from ((line, exports.get(each, each)) for each in names)


def _names_of_group(code: str, start: int) -> list[str]:
    """Return the first name of each path in a group whose brace ends at ``start``."""
    depth, begins, names = 1, start, []
    for at in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0 or (depth == 1 and code[at] == ","):
            name = _FIRST_NAME.match(code, begins, at)
            names += [name[1]] if name else []
            begins = at + 1
        if depth == 0:
            break
    return names


def _exports(library: Path) -> dict[str, str]:
    """Return the rooms of the names that the root of the crate re-exports."""
    exports = {}
    for room, group, name in _EXPORT.findall(library.read_text(encoding="utf-8")):
        for each in (group or name).split(","):
            exports[each.split(" as ")[-1].strip()] = room
    return exports


if __name__ == "__main__":
    problems = violations(SOURCE, LAYERS)
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    sys.exit(bool(problems))
