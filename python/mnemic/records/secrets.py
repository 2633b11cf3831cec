"""Passwords in URLs, and their replacement in reprs."""

import re

_HIDDEN = "***"
_LOGIN = r"://(?:[^\s/?#@:]*:\S*@|[^\s/?#]*@)"
"""A user's name, with or without a password. Passwords may have unquoted slashes and signs @."""

_OPTION = (
    r"(?i)([?&;]\w*(?:password|passwd|pwd|secret|token|api[_-]?key|signature)\w*=)[^&;#\s'\"]+"
)
# Compiled on first use, and kept by `re`: compiling them takes as long as importing this room.


class RedactedStr(str):
    """A text whose repr is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def without_passwords(text: str) -> str:
    """Return a text whose URLs have no login, and no password or token among their options."""
    if "://" not in text:
        return text
    without_logins = re.sub(_LOGIN, f"://{_HIDDEN}@", text)
    return re.sub(_OPTION, rf"\1{_HIDDEN}", without_logins)


def safe(value: object) -> object:
    """Return a value whose repr has no password of a URL: itself, or its repr without them."""
    if not isinstance(value, str | tuple | list | dict):
        return value
    shown = repr(value)
    cleaned = without_passwords(shown)
    return value if cleaned == shown else RedactedStr(cleaned)
