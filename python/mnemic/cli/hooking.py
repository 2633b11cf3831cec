"""The verb hook: what an agent's hooks run; it needs neither argparse nor, mostly, the package."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.cli.place import AGENT, hooks_log, place_here
from mnemic.mcp.hook import Surroundings, answer

if TYPE_CHECKING:
    from mnemic import Memory


def hook(given: Sequence[str]) -> None:
    """Answer a hook; where not even the log can be found, say nothing.

    Args:
        given: Its name, and the options `--db` and `--user`, each with a value.
    """
    with suppress(Exception):
        _answer(given)


def _answer(given: Sequence[str]) -> None:
    named = dict(zip(given[1::2], given[2::2], strict=False))
    place = place_here(named.get("--db"))

    def open_memory() -> "Memory":
        from mnemic.cli.call import Call  # noqa: PLC0415 - where no server runs

        whole = argparse.Namespace(db=place, agent=AGENT, user=None, all_users=False, json=False)
        return Call(whole).stored()

    here = Surroundings(place, AGENT, named.get("--user"), open_memory, Path(hooks_log()))
    answer(given[0] if given else "", here)
