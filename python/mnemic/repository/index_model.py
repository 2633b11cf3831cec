"""The change of an index's model: the agent's first vector, or those of another embedder."""

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.model.rows import State
from mnemic.repository.agent_index import AgentIndex, IndexModel
from mnemic.repository.index_loading import IndexLoading, Swapping
from mnemic.repository.missing_vectors import MissingVectors
from mnemic.repository.vector_model import VectorModel
from mnemic.store.values import Model
from mnemic.threads.locks import Lock


class ModelChange:
    """Makes an index again where its vectors are of another model.

    Args:
        index: The index.
        loading: Loads it.
    """

    def __init__(self, index: AgentIndex, loading: IndexLoading) -> None:
        self._index = index
        self._loading = loading
        self._learning = Lock()
        index.model = self._made_for(index.model.vectors, index.model.known)

    def learn(self) -> None:
        """Take the vectors in once there are some of a model that the index was not made for."""
        index = self._index
        if not index.lacks_model:
            return
        with self._learning:
            vectors = index.model.vectors
            known = vectors.known
            if known is not None and known != index.model.known:
                snapshots = index.snapshots_of(vectors, known)
                self._loading.build(index.model._replace(known=known, snapshots=snapshots))

    def adopt(self, vectors: VectorModel, swapping: Swapping) -> None:
        """Replace the index by one of the vectors that the agent has now.

        Searches go on with the old one until the new one is loaded.

        Args:
            vectors: The model of the agent's vectors now.
            swapping: Its context contains the replacement, and nothing that takes long.
        """
        index = self._index
        old, model = index.model.missing, self._made_for(vectors, vectors.known)
        with self._learning:
            if not self._is_adopted_empty(model, swapping):
                self._loading.build(model, swapping)
            index.is_switching = False
        if old is not None:
            old.stop()

    def _is_adopted_empty(self, model: IndexModel, swapping: Swapping) -> bool:
        """Replace an index that is not loaded by an empty one; return False if it is loaded."""
        index = self._index
        with index.lock:
            if index.is_loaded:
                return False
            with swapping():
                index.model, index.native = model, index.new(model)
            return True

    def missing_of(self, embedder: ValidatedEmbedder | None) -> MissingVectors | None:
        """Return what embeds the memories without a vector, if this index has them embedded."""
        index = self._index
        if embedder is None or not index.settings.can_write or index.state is not State.ACTIVE:
            return None
        return MissingVectors(index.store, index.agent_id, embedder, index.unembedded, self.learn)

    def _made_for(self, vectors: VectorModel, known: Model | None) -> IndexModel:
        missing = self.missing_of(vectors.embedder)
        return IndexModel(vectors, known, missing, self._index.snapshots_of(vectors, known))
