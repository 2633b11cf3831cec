"""Print the libraries that mnemic, its embedder and mnemic-files need, for pip, one a line."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def libraries() -> list[str]:
    """Return what mnemic with its extra `local` and mnemic-files require of other projects."""
    mnemic, files = (
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in (ROOT, ROOT / "files")
    )
    local = mnemic["optional-dependencies"]["local"]
    needed = dict.fromkeys([*mnemic["dependencies"], *local, *files["dependencies"]])
    return [one for one in needed if not one.startswith("mnemic")]


if __name__ == "__main__":
    print(*libraries(), sep="\n")  # noqa: T201 - a script for the Makefile
