"""Agent ids: a GUID names one agent in each of its many spellings."""

import re
from collections.abc import Collection

_BRACKETS = {"": "", "{": "}", "(": ")"}
_PARTS = "-?".join(f"([0-9a-f]{{{length}}})" for length in (8, 4, 4, 4, 12))
_GUID = rf"agent:(?:urn:uuid:)?([{{(]?){_PARTS}([)}}]?)"


def canonical(agent_id: str) -> str | None:
    """Return `agent:` and 32 lower-case hexadecimal digits; None if the id is not a GUID.

    Case, hyphens, braces, parentheses and `urn:uuid:` make no difference.
    """
    found = ":" in agent_id and re.fullmatch(_GUID, agent_id, re.IGNORECASE | re.ASCII)
    if not found:
        return None
    opening, *parts, closing = found.groups()
    return f"agent:{''.join(parts).lower()}" if _BRACKETS[opening] == closing else None


def is_same_agent(one: str, other: str) -> bool:
    """Return whether two ids name one agent."""
    return one == other or (canonical(one) is not None and canonical(one) == canonical(other))


def stored_spelling(agent_id: str, stored: Collection[str]) -> str:
    """Return the spelling under which an agent's memories are stored from now on.

    Files written when each spelling was an agent of its own keep the spellings: memories stored
    under the given spelling are found by it, and memories stored under another one by every
    spelling that is not stored itself.

    Args:
        agent_id: The caller's spelling.
        stored: Ids of all agents of a file.
    """
    wanted = canonical(agent_id)
    if wanted is None or agent_id in stored:
        return agent_id
    if wanted in stored:
        return wanted
    return min((each for each in stored if canonical(each) == wanted), default=wanted)
