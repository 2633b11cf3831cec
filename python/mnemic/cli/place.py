"""Where the memories are, and whose, where the command line does not say it."""

import os
from pathlib import Path
from typing import Final

PLACE: Final = "MNEMIC_DB"
USER: Final = "MNEMIC_USER"
AGENT: Final = "default"


def data_folder() -> Path:
    """Return the folder of this user's data."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "mnemic"


def hooks_log() -> Path:
    """Return the file in which hooks of agents note what failed."""
    return data_folder() / "hooks.log"


def default_place() -> Path:
    """Return the file that is used where none is named."""
    return data_folder() / "memory.db"


def place_here(named: str | None = None) -> str:
    """Return the file or URL of the memories; the folder of the default file is made.

    Args:
        named: A place that the command line names.
    """
    named = named or os.environ.get(PLACE)
    if named:
        return named
    path = default_place()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(path)


def shown(place: str) -> str:
    """Return a place as it may be printed: a URL without its login and its options."""
    scheme, sign, rest = place.partition("://")
    address, _, options = rest.partition("?")
    if "@" in options:  # this ? may stand in a password that is not quoted
        address = "***"
    return f"{scheme}{sign}{address.rpartition('@')[2]}"
