"""Print the libraries that mnemic, its embedder and mnemic-files need, for pip, one a line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def libraries() -> list[str]:
    """Return the requirements of mnemic with its extra `local`, and of mnemic-files."""
    mnemic, files = _project(ROOT), _project(ROOT / "files")
    needed = [
        *mnemic["dependencies"],
        *mnemic["optional-dependencies"]["local"],
        *files["dependencies"],
    ]
    return [one for one in dict.fromkeys(needed) if not one.startswith("mnemic")]


def _project(folder: Path) -> dict[str, Any]:
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


if __name__ == "__main__":
    print(*libraries(), sep="\n")  # noqa: T201 - a script for the Makefile
