"""Print the libraries that mnemic and its default embedder need, for pip, one a line."""

from __future__ import annotations

import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def libraries() -> list[str]:
    """Return the requirements of the package and of its extra `local`, without its own model."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["local"]]
    return [one for one in needed if not one.startswith("mnemic")]


if __name__ == "__main__":
    print(*libraries(), sep="\n")  # noqa: T201 - a script for the Makefile
