"""Parses the URL of a store."""

import os
import re

from mnemic.errors import StoreFileError
from mnemic.records.secrets import without_passwords

_SCHEME = r"([a-z][a-z0-9+.-]*)://"
_MISSPELT = r":|(?:memory|sqlite3?|postgres(?:ql)?):(?!//)|[A-Z][A-Za-z0-9+.-]*://"
_SUPPORTED = (
    "only file paths, sqlite:///relative/path, sqlite:////absolute/path, ':memory:' and "
    "postgresql:// are supported"
)


def path_of(url: str | os.PathLike[str]) -> str:
    """Return the path that a URL names, or ":memory:".

    Args:
        url: A path, or ":memory:", or `sqlite:///` followed by a path, relative to the working
            directory or absolute, or by `:memory:`. A URL is percent-decoded (`%3F` is "?") and has
            no options.

    Raises:
        StoreFileError: If the URL is not supported; the message lists the supported forms, and has
            no password of the URL.
    """
    text = os.fsdecode(url)
    if ":" not in text:
        return text
    misspelt = re.match(_MISSPELT, text)
    if misspelt and text != ":memory:":  # the rest may hold a password
        raise StoreFileError(
            f"a path that begins with {misspelt[0]!r} would be the name of a file: {_SUPPORTED}; "
            "write ./ before it if it is one"
        )
    scheme = re.match(_SCHEME, text)
    if scheme is None:
        return text
    host, slash, quoted = text[scheme.end() :].partition("/")
    if scheme[1] != "sqlite" or host or not slash or not quoted:
        raise StoreFileError(f"{without_passwords(text)}: {_SUPPORTED}")
    if "?" in quoted or "#" in quoted:
        shown = without_passwords(text)
        raise StoreFileError(f"{shown}: a URL has no options here; write %3F for '?', %23 for '#'")
    from urllib.parse import unquote  # noqa: PLC0415 - slow to import, and rarely needed

    try:
        return unquote(quoted, errors="strict")
    except UnicodeDecodeError as error:
        raise StoreFileError(f"{text}: it is not a path in UTF-8 ({error})") from error
