"""A vector store and a retriever of LangChain over mnemic."""

from langchain_mnemic.retriever import MnemicRetriever
from langchain_mnemic.vectorstore import MnemicVectorStore

__all__ = ["MnemicRetriever", "MnemicVectorStore"]
