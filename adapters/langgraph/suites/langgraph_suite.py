"""Runs the tests of LangGraph's InMemoryStore over mnemic: the name stands for the adapter."""

import langgraph.store.memory
from langgraph.store.mnemic import MnemicStore
from langgraph_calls import Counted, Report


class CountedStore(Counted, MnemicStore):
    """The adapter, counted."""


def pytest_configure(config):
    """Put the adapter in the place of LangGraph's store before tests are collected."""
    langgraph.store.memory.InMemoryStore = CountedStore
    config.pluginmanager.register(Report(CountedStore))
