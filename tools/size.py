"""Hold the sizes of the folders to their budgets in tools/budgets.toml: `python tools/size.py`.

A line of code has something other than blanks, a comment or a docstring; a statement over three
lines counts three. Tests inside a crate are not counted. Attributes of a class are those that its
methods assign; fields of records are not counted. The stub of the extension, whose text are its
docstrings, is not counted either. `make size` prints all sizes and lowers each budget to what is
needed today. To raise one, edit the table and say in docs/project/decisions.md why.
"""

import ast
import io
import subprocess
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import TypeAlias

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools" / "budgets.toml"
ROOTS = (
    *("python/mnemic", "files"),
    *("rust/core/src", "rust/embed/src", "rust/py/src"),
    *("tests", "benches", "tools"),
)
"""Folders whose subfolders have budgets; so has what lies loose in them."""
UNDIVIDED = "files", "tests", "tools"
"""Those with one budget: what a test proves moves between folders more often than code does."""
INNER_FOLDERS = tuple(f"python/mnemic/store/{name}" for name in ("sql", "sqlite", "postgres"))
"""Folders inside folders, with budgets of their own."""
LIMITS = {"methods": 30, "attributes": 12, "arguments": 10}
"""Limits of every class; one that exceeds them has a budget of its own."""
SLACK = 1.03
"""A budget that exceeds today's size by more than this share has to be lowered."""
TOO_LARGE = (
    "Make it smaller; or raise the budget in tools/budgets.toml, why in docs/project/decisions.md."
)
TOO_HIGH = "`make size` lowers the budget."
ARE_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}

Sizes: TypeAlias = dict[str, int]
Table: TypeAlias = dict[str, Sizes]
"""Sizes by the name of a folder, class or folder of pages."""


def folder_of(path: PurePath) -> str | None:
    """Return the folder that a source file belongs to."""
    if path.is_relative_to("adapters"):
        return "/".join(path.parts[:2]) if path.parts[2:3] == ("src",) else "adapters"
    for inner in INNER_FOLDERS:
        if path.is_relative_to(inner):
            return inner
    for root in ROOTS:
        if path.is_relative_to(root):
            first, *rest = path.relative_to(root).parts
            return f"{root}/{first}" if rest and root not in UNDIVIDED else root
    return None


def python_lines(source: str, tree: ast.Module) -> int:
    """Count the lines of Python code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in ARE_NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for text in docstrings(tree):
        lines.difference_update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return len(lines)


def docstrings(tree: ast.Module) -> Iterator[ast.Expr]:
    """Yield the texts that are statements: of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                yield node


def rust_lines(source: str) -> int:
    """Count the lines of Rust code in root format, without the tests at the end of a file."""
    lines, is_test, last = 0, False, ""
    for line in source.splitlines():
        is_test = is_test or (
            last == "#[cfg(test)]" and line.startswith("mod ") and line[-1] == "{"
        )
        text = line.strip()
        lines += bool(text) and not is_test and not text.startswith("//")
        is_test = is_test and line != "}"
        last = line
    return lines


def class_sizes(node: ast.ClassDef) -> Sizes:
    """Return the methods, assigned attributes and arguments of construction of a class."""
    methods = [
        each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    attributes = {
        part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
        if isinstance(part.value, ast.Name) and part.value.id == "self"
    }
    arguments = 0
    for method in methods:
        if method.name == "__init__":
            own = method.args
            arguments = len(own.posonlyargs) + len(own.args) + len(own.kwonlyargs) - 1
    return {"methods": len(methods), "attributes": len(attributes), "arguments": arguments}


def large_classes(path: PurePath, tree: ast.Module) -> Table:
    """Return the sizes of a file's classes, as far as they exceed the limits of every class."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            sizes = class_sizes(node)
            above = {what: size for what, size in sizes.items() if size > LIMITS[what]}
            if above:
                found[f"{path}:{node.name}"] = above
    return found


def measured(paths: Iterable[PurePath]) -> dict[str, Table]:
    """Return today's sizes: folders, classes of the package, pages."""
    folders: Table = defaultdict(lambda: {"lines": 0, "files": 0})
    classes: Table = {}
    words = 0
    for path in paths:
        folder, lines = folder_of(path), 0
        if path.suffix in {".py", ".pyi"} and path.name != "_core.pyi" and folder:
            source = (ROOT / path).read_text()
            tree = ast.parse(source)
            lines = python_lines(source, tree)
            if path.is_relative_to("python") or path.is_relative_to("files"):
                classes |= large_classes(path, tree)
        elif path.suffix == ".rs" and folder and not path.stem.endswith("tests"):
            lines = rust_lines((ROOT / path).read_text())
        elif path.suffix == ".md" and path.is_relative_to("docs"):
            words += len((ROOT / path).read_text().split())
        if lines:
            folders[folder or ""]["lines"] += lines
            folders[folder or ""]["files"] += 1
    return {
        "folders": dict(sorted(folders.items())),
        "classes": classes,
        "pages": {"docs": {"words": words}},
    }


def sources() -> list[PurePath]:
    """Return the files of the project, with those that are new and not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    shown = subprocess.run(  # noqa: S603 - constants
        command, cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [PurePath(name) for name in shown.stdout.splitlines() if (ROOT / name).is_file()]


def compared(today: Mapping[str, Table], budgets: Mapping[str, Table]) -> Iterator[str]:
    """Yield a sentence for each size over its budget, and for each budget that is not needed."""
    for section, table in today.items():
        allowed = budgets.get(section, {})
        for name in sorted(table.keys() | allowed.keys()):
            yield from differences(name, table.get(name, {}), allowed.get(name, {}))


def differences(name: str, sizes: Sizes, budgets: Sizes) -> Iterator[str]:
    """Yield such sentences for one folder, class or folder of pages."""
    for what in sorted(sizes.keys() | budgets.keys()):
        size, budget = sizes.get(what, 0), budgets.get(what, LIMITS.get(what, 0))
        if size > budget:
            yield f"{name} has {size:,} {what} of {budget:,}. {TOO_LARGE}"
        elif budget > max(SLACK * size, size + 1):
            yield f"{name} has {size:,} {what} of {budget:,}. {TOO_HIGH}"


def lowered(today: Mapping[str, Table], budgets: Mapping[str, Table]) -> dict[str, Table]:
    """Return the budgets, each at most today's size; what has none gets today's."""
    return {
        section: {
            name: {
                what: min(size, budgets.get(section, {}).get(name, {}).get(what, size))
                for what, size in sizes.items()
            }
            for name, sizes in table.items()
        }
        for section, table in today.items()
    }


def written(table: Mapping[str, Table]) -> str:
    """Return the table as TOML."""
    lines = ["# Budgets of size, held by `make lint`: see tools/size.py.", ""]
    for section, rows in table.items():
        lines.append(f"[{section}]")
        for name, sizes in rows.items():
            inside = ", ".join(f"{what} = {size}" for what, size in sizes.items())
            lines.append(f'"{name}" = {{ {inside} }}')
        lines.append("")
    return "\n".join(lines)


def totals(today: Mapping[str, Table]) -> Iterator[str]:
    """Yield the size of each root, for a reader."""
    for root in ROOTS:
        own = [
            sizes for name, sizes in today["folders"].items() if PurePath(name).is_relative_to(root)
        ]
        lines, files = (sum(sizes[what] for sizes in own) for what in ("lines", "files"))
        yield f"{root:20}{lines:10,} lines of code in{files:5} files"
    yield f"{'docs':20}{today['pages']['docs']['words']:10,} words"
    yield f"{len(today['classes'])} classes over the limits of every class"


def main() -> int:
    """Compare with the budgets, or lower them; return 1 where one is exceeded or not needed."""
    today = measured(sources())
    budgets = tomllib.loads(TABLE.read_text()) if TABLE.exists() else {}
    if "--lower" in sys.argv[1:]:
        TABLE.write_text(written(lowered(today, budgets)))
        sys.stdout.write("\n".join(totals(today)) + "\n")
        budgets = tomllib.loads(TABLE.read_text())
    found = list(compared(today, budgets))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
