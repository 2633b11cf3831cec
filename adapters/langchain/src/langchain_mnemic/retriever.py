"""A retriever over a memory of mnemic."""

from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from langchain_mnemic.documents import document_of
from mnemic import ScopedMemory
from mnemic.adapters import query_text, sync_method


class MnemicRetriever(BaseRetriever):
    """Finds memories by meaning and words together, as `memory.search` does.

    The memory embeds queries itself, by default with mnemic's local model: no `Embeddings` object
    is needed. Every option of `search` may be given for all calls, and each call may have others:
    `retriever.invoke("tea", k=3, user_id="alice")`.

    Attributes:
        memory: An open `Memory`, or a view of one, such as `MnemicVectorStore.memory`.
        k: Number of documents.
        user_id: The user whose memories are found; a call cannot name another one. None leaves
            it to the memory, and to each call.
        options: Further arguments of each search, such as `filters` and `min_score`.
    """

    memory: ScopedMemory
    k: int = 4
    user_id: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    async def _aget_relevant_documents(
        self, /, query: str, *, run_manager: object, k: int | None = None, **given: Any
    ) -> list[Document]:
        del run_manager
        asked, memory = query_text(query), self.memory.scoped(user_id=self.user_id).aio
        options = self.options | {"limit": self.k if k is None else k} | given
        hits = await memory.search(asked, **options) if asked else ()
        return [document_of(hit.entry) for hit in hits]

    _get_relevant_documents = sync_method(_aget_relevant_documents)
