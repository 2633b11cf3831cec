"""The verb hook: what an agent's hooks run; it needs neither argparse nor, mostly, the package."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mnemic.cli.place import AGENT, hooks_log, place_here
from mnemic.mcp.hook import Surroundings, answer

if TYPE_CHECKING:
    from mnemic import Memory


def hook(given: Sequence[str]) -> None:
    """Answer a hook.

    Args:
        given: Its name.
    """
    here = Surroundings(place_here(), AGENT, _memory, hooks_log())
    answer(given[0] if given else "", here)


def _memory(with_model: bool) -> "Memory":  # noqa: FBT001 - a callback
    from mnemic.cli.call import Call  # noqa: PLC0415 - where no server runs

    given = argparse.Namespace(db=None, agent=AGENT, user=None, all_users=False, json=False)
    options = {} if with_model else {"embedder": None}
    return Call(given).memory(**options)
