"""A vector store and a memory block of LlamaIndex over mnemic."""

from llama_index.vector_stores.mnemic.base import MnemicVectorStore
from llama_index.vector_stores.mnemic.memory_block import MnemicMemoryBlock

__all__ = ["MnemicMemoryBlock", "MnemicVectorStore"]
