"""The notifications of commits: what a write sends, and what a feed reads."""

import hashlib
from typing import Final, NamedTuple

from mnemic.store.values import LogPosition

CHANNEL: Final = "mnemic_changes"
"""The channel on which each commit notifies of the new positions of its agents."""


_MAX_DIGITS: Final = 19
"""Digits of the largest position; Python refuses to read numbers of some thousand."""


class Notification(NamedTuple):
    """A notification.

    Attributes:
        digest: Names the agent.
        position: Its position after the commit.
    """

    digest: str
    position: LogPosition


def digest_of(agent_id: str) -> str:
    """Return the name of an agent in notifications, which any role of the database can read."""
    return hashlib.sha256(agent_id.encode()).hexdigest()[:32]


def payload(agent_id: str, position: LogPosition) -> str:
    """Return the payload of a notification."""
    return f"{digest_of(agent_id)} {position.seq} {position.accesses}"


def parsed(text: str) -> Notification | None:
    """Return the notification of a payload; None if it is not one."""
    digest, *numbers = text.split(" ")
    if len(numbers) != 2 or not all(map(_is_number, numbers)):  # noqa: PLR2004
        return None
    return Notification(digest, LogPosition(int(numbers[0]), int(numbers[1])))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
