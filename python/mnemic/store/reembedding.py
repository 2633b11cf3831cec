"""The part of the contract of stores that makes another model the agent's own."""

from collections.abc import Collection
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from mnemic.errors import KeyUnavailableError
from mnemic.store.values import Model


class ToEmbed(NamedTuple):
    """How far another model's vectors are filled.

    Attributes:
        lacking: Number of entries that still lack their vectors.
        wanted: Number of entries that need them.
    """

    lacking: int
    wanted: int


def reembedded_without_key(agent_id: str) -> KeyUnavailableError:
    """Return the error of an agent with sealed entries that is embedded again without a key."""
    return KeyUnavailableError(
        f"agent {agent_id!r} has sealed memories, which cannot be embedded without their key; open "
        "the memory with encryption=Encryption(key=...)"
    )


class Reembedding(Protocol):
    """Fills the companion vectors of a model, and makes that model the agent's own.

    All entries that are not deleted need vectors, sensitive ones too, but those whose own vector is
    zero: they shall have none. Vectors of a content are enough whoever stored them.
    """

    def to_embed(self, agent_id: str, model: Model) -> ToEmbed:
        """Return how many entries lack the companion vectors of a model, and how many need them.

        Raises:
            KeyUnavailableError: If entries are sealed, and there is no key.
        """
        ...

    def rows_to_embed(self, agent_id: str, model: Model, after: int, limit: int) -> list[int]:
        """Return rows that lack the companion vectors of a model, ascending.

        Args:
            agent_id: The agent.
            model: The model.
            after: Only later rows.
            limit: Maximum number of rows.
        """
        ...

    def switch_model(
        self, agent_id: str, model: Model, skipped: Collection[int] = (), max_lacking: int = 0
    ) -> Future[bool]:
        """Make the companion vectors of a model the agent's own, unless entries lack them.

        The vectors that were its own become companions of their model; those of sensitive and
        sealed entries are deleted. Entries whose own vector is zero have a zero vector of the new
        model. The change is logged for each user, and makes `rows_since` return all rows.

        Args:
            agent_id: The agent.
            model: The model; its name is another than that of the agent's vectors.
            skipped: Rows that may lack vectors, and have none then.
            max_lacking: Number of other rows that may lack them, and have none then.

        Returns:
            Whether that was done; nothing changes where more entries lack their vectors.

        Raises:
            StoreCorruptError: If a vector is damaged.
        """
        ...
