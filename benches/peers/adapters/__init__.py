"""The systems that are compared, a file each; a library is imported only when it is used."""

import importlib
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ADAPTERS = {
    "mnemic": "Mnemic",
    "lancedb": "Lance",
    "areev": "Areev",
    "chroma": "Chroma",
    "langgraph": "LangGraph",
    "mem0": "Mem0",
    "sqlite_vec": "SqliteVec",
}
"""Class by module."""
PROJECT = Path(__file__).parents[3] / "pyproject.toml"
GROUP = "memory-peers"


def load(name):
    """Return a system's class.

    Raises:
        ImportError: If its library is not installed; `pip_line` is what helps.
    """
    return getattr(importlib.import_module(f"{__name__}.{name}"), ADAPTERS[name])


def pip_line():
    """Return how the libraries are installed, in the versions that were measured."""
    groups = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["dependency-groups"]
    return f"pip install {' '.join(groups[GROUP])}"


def version_of(distribution):
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
