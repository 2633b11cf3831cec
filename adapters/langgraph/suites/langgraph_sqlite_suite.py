"""Runs the tests of LangGraph's SqliteStore and AsyncSqliteStore over mnemic.

Two settings have other names or defaults there than in `langgraph.store.base`, which the adapter
follows: the fields to embed are `text_fields`, and `refresh_on_read` is False unless it is given.
"""

import langgraph.store.sqlite
import langgraph.store.sqlite.aio
from langgraph.store.mnemic import AsyncMnemicStore, MnemicStore
from langgraph_calls import Counted, Report


def settings(index=None, ttl=None):
    """Return the adapter's settings for those of SqliteStore."""
    if index is not None:
        index = {**index, "fields": index.get("text_fields")}
    return {"index": index, "ttl": ttl and {"refresh_on_read": False, **ttl}}


class CountedStore(Counted, MnemicStore):
    """The plain adapter, with the settings of SqliteStore."""

    @classmethod
    def from_conn_string(cls, conn_string, **given):
        """Open a store."""
        return super().from_conn_string(conn_string, **settings(**given))


class CountedAsyncStore(Counted, AsyncMnemicStore):
    """The awaited adapter, with the settings of AsyncSqliteStore."""

    @classmethod
    def from_conn_string(cls, conn_string, **given):
        """Open a store."""
        return super().from_conn_string(conn_string, **settings(**given))


def pytest_configure(config):
    """Put the adapters in the place of LangGraph's stores before tests are collected."""
    for module in (langgraph.store.sqlite, langgraph.store.sqlite.aio):
        module.SqliteStore, module.AsyncSqliteStore = CountedStore, CountedAsyncStore
    config.pluginmanager.register(Report(CountedStore, CountedAsyncStore))
