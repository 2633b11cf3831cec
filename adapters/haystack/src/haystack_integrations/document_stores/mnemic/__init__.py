"""A document store of Haystack over mnemic."""

from haystack_integrations.document_stores.mnemic.document_store import MnemicDocumentStore

__all__ = ["MnemicDocumentStore"]
