"""The embedding model that a file records for an agent, read without opening a memory."""

import os

from mnemic.model import EmbeddingModel, Scope, validation
from mnemic.store import open_store
from mnemic.store.operations import AgentFacts


def stored_model(path: str | os.PathLike[str], agent_id: str) -> EmbeddingModel | None:
    """Return the model of an agent's vectors; None if the file has no vector of this agent.

    Nothing is written, no model is loaded, and no embedder is needed.

    Args:
        path: An existing file.
        agent_id: The agent.

    Raises:
        StoreFileError: If there is no such file, or it holds something else.
        SchemaVersionError: If an earlier mnemic wrote the file; the message has the call that
            brings it up to date.
        StoreError: If it cannot be read.
    """
    named = Scope(agent_id)
    store = open_store(validation.path("path", path), read_only=True)
    try:
        found = store.read(AgentFacts(store.stored_agent_id(named.agent_id))).model
    finally:
        store.close()
    return None if found is None else EmbeddingModel(*found)
