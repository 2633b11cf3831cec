"""The compared systems, a file each; a library is imported only when it is used."""

import importlib
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

ADAPTERS = {
    "mnemic": ("Mnemic", ["mnemic"]),
    "lancedb": ("Lance", ["lancedb"]),
    "areev": ("Areev", ["areev"]),
    "chroma": ("Chroma", ["chromadb"]),
    "grep": ("Grep", []),
    "langgraph": ("LangGraph", ["langgraph"]),
    "mem0": ("Mem0", ["mem0ai", "qdrant-client"]),
    "sqlite_vec": ("SqliteVec", ["sqlite-vec"]),
}
"""Class and distributions by module."""
PROJECT = Path(__file__).parents[3] / "pyproject.toml"
GROUP = "memory-peers"


def load(name):
    """Return a system's class.

    Raises:
        ImportError: If its library is not installed; `pip_line` installs it.
    """
    return getattr(importlib.import_module(f"{__name__}.{name}"), ADAPTERS[name][0])


def pip_line(name):
    """Return how a system is installed, in the version of the dependency group."""
    groups = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["dependency-groups"]
    pins = {re.split("[=<>]", pin)[0]: pin for pin in groups[GROUP]}
    return f"pip install {' '.join(pins[each] for each in ADAPTERS[name][1])}"


def versions(names):
    """Return the versions of the systems' distributions."""
    return {each: version(each) for name in names for each in ADAPTERS[name][1]}
