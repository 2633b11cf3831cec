"""A memory provider of the Hermes Agent over mnemic."""

from hermes_mnemic.provider import MnemicMemoryProvider

__all__ = ["MnemicMemoryProvider"]
