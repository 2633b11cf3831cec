"""The part of the contract of stores that makes another model the agent's own."""

from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from mnemic.arrays import Float32Array
from mnemic.errors import KeyUnavailableError
from mnemic.model import MemoryEntry
from mnemic.store.values import Model


class ReembeddingProgress(NamedTuple):
    """How far another model's vectors are filled.

    Attributes:
        missing: Number of entries that still lack their vectors.
        wanted: Number of entries that need them.
    """

    missing: int
    wanted: int


def reembedded_without_key(agent_id: str) -> KeyUnavailableError:
    """Return the error of an agent with sealed entries that is embedded again without a key."""
    return KeyUnavailableError(
        f"agent {agent_id!r} has sealed memories, which cannot be embedded without their key; open "
        "the memory with encryption=Encryption(key=...)"
    )


class Reembedding(Protocol):
    """Fills the shadow vectors of a model, and makes that model the agent's own.

    Shadow vectors are those of other models than the agent's own, beside the entries they belong
    to: those that are being filled, and those of a former model until they are dropped. Nothing
    else depends on them, they are no changes of their entries, count in no quota and go into no
    export. They share the entry's transactions: those of an old content are gone once the new one
    is stored, and all are with a permanently deleted entry. A model may be a shadow model and,
    before or later, the agent's own; the vectors of both are kept apart.

    All entries that are not deleted need vectors, sensitive ones too, but those whose own vector is
    zero: they shall have none. Vectors of a content are enough whoever stored them.
    """

    def add_shadow_vectors(
        self,
        agent_id: str,
        model: str,
        entries: Mapping[int, MemoryEntry],
        vectors: Mapping[int, Float32Array],
    ) -> Future[int]:
        """Store shadow vectors of rows, in place of earlier ones of the model.

        Args:
            agent_id: The agent.
            model: Name of the model.
            entries: The entries by row; those whose content is stored no more are passed over.
            vectors: Shape (chunks, dimensions), for each of these rows; finite.

        Returns:
            Number of rows whose vectors were stored.
        """
        ...

    def drop_shadow_vectors(self, agent_id: str, model: str | None) -> Future[int]:
        """Delete the shadow vectors of a model, or of all; return of how many entries.

        An entry with vectors of two models counts twice. The agent's own vectors stay, whatever
        their model.
        """
        ...

    def to_embed(self, agent_id: str, model: Model) -> ReembeddingProgress:
        """Return how many entries lack the shadow vectors of a model, and how many need them.

        Raises:
            KeyUnavailableError: If entries are sealed, and there is no key.
        """
        ...

    def rows_to_embed(self, agent_id: str, model: Model, after: int, limit: int) -> list[int]:
        """Return rows that lack the shadow vectors of a model, ascending.

        Args:
            agent_id: The agent.
            model: The model.
            after: Only later rows.
            limit: Maximum number of rows.
        """
        ...

    def switch_model(
        self, agent_id: str, model: Model, skipped: Collection[int] = (), max_missing: int = 0
    ) -> Future[bool]:
        """Make the shadow vectors of a model the agent's own, unless entries lack them.

        The vectors that were its own become shadow vectors of their model; those of sensitive and
        sealed entries are deleted. Entries whose own vector is zero have a zero vector of the new
        model. The change is logged for each user, and makes `rows_since` return all rows.

        Args:
            agent_id: The agent.
            model: The model; its name is another than that of the agent's vectors.
            skipped: Rows that may lack vectors, and have none then.
            max_missing: Number of other rows that may lack them, and have none then.

        Returns:
            Whether that was done; nothing changes where more entries lack their vectors.

        Raises:
            StoreCorruptError: If a vector is damaged.
        """
        ...
