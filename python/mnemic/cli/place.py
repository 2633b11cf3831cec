"""Where the memories are, and whose, where the command line does not say it."""

import os
from typing import Final

PLACE: Final = "MNEMIC_DB"
USER: Final = "MNEMIC_USER"
AGENT: Final = "default"


def data_folder() -> str:
    """Return the folder of this user's data.

    Raises:
        FileNotFoundError: If the user has no home.
    """
    home = os.path.expanduser("~")  # noqa: PTH111 - pathlib is slow to import
    data = os.environ.get("XDG_DATA_HOME") or f"{home}/.local/share"
    if data.startswith("~"):
        raise FileNotFoundError(f"this user has no home folder; name a file by --db or {PLACE}")
    return f"{data}/mnemic"


def hooks_log() -> str:
    """Return the file in which hooks of agents note what failed."""
    return f"{data_folder()}/hooks.log"


def place_here(named: str | None = None) -> str:
    """Return the file or URL of the memories; the folder of the default file is made.

    Args:
        named: A place that the command line names.
    """
    named = named or os.environ.get(PLACE)
    if named:
        return named
    folder = data_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - as above
    return f"{folder}/memory.db"


def shown(place: str) -> str:
    """Return a place as it may be printed: a URL without its login and its options."""
    scheme, sign, rest = place.partition("://")
    address, _, options = rest.partition("?")
    if "@" in options:  # this ? may stand in a password that is not quoted
        address = "***"
    return f"{scheme}{sign}{address.rpartition('@')[2]}"
