"""The embedding model of an agent's vectors: one for all of them."""

from collections.abc import Iterable, Sequence

from mnemic.errors import EmbeddingModelMismatchError, InvalidEntryError
from mnemic.model import MemoryEntry
from mnemic.store.values import Model


def model_of(entries: Iterable[MemoryEntry]) -> Model | None:
    """Return the model of the entries' embeddings; None if there are none.

    Raises:
        EmbeddingModelMismatchError: If they come from several models.
        InvalidEntryError: If an embedding names no model.
    """
    first = None
    for entry in entries:
        if entry.embedding is None:
            continue
        model = entry.embedding_model, entry.embedding.size
        if first is not None and model != first:
            raise EmbeddingModelMismatchError(
                f"one call brings vectors of several models: {first}, {model}"
            )
        first = model
    if first is None:
        return None
    name, dimensions = first
    if name is None:
        raise InvalidEntryError("an entry has an embedding without its embedding_model")
    return name, dimensions


def check_model(agent_id: str, known: Sequence[object], model: Model) -> None:
    """Raise EmbeddingModelMismatchError if an agent has vectors of another model.

    Args:
        agent_id: The agent.
        known: Name and dimension of the model of its vectors; (None, None) before any.
        model: The model of further vectors.
    """
    if known[0] is not None and tuple(known) != model:
        unfit = EmbeddingModelMismatchError(
            f"agent {agent_id!r} has vectors of {known[0]!r} with {known[1]} dimensions, and "
            f"those of {model[0]!r} with {model[1]} cannot be compared with them; open the memory "
            f"with the embedder {known[0]!r}, or have all embedded again: memory.reembed(...)"
        )
        if isinstance(known[1], int) and known[1] != model[1]:
            unfit.stored, unfit.given = known[1], model[1]
        raise unfit
