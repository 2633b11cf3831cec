"""Opens the store that a URL names; nothing else in the package names an implementation."""

import os

from mnemic.store.base import Store
from mnemic.store.row_codec import PlainRowCodec
from mnemic.store.sqlite.store import SqliteStore


def open_store(url: str | os.PathLike[str], *, read_only: bool = False) -> Store:
    """Open a store.

    Args:
        url: A path, ":memory:", or `sqlite:///` followed by either; see `mnemic.store.url`.
        read_only: Whether to open an existing store without changing it.

    Raises:
        StoreError: If the URL is not supported, or what it names cannot be opened.
    """
    return SqliteStore(url, read_only=read_only, codec=PlainRowCodec())
