"""Passwords in URLs, and their replacement in reprs."""

import re

_HIDDEN = "***"
_LOGIN = re.compile(r"://(?:[^\s/?#@:]*:\S*@|[^\s/?#]*@)")
"""A user's name, with or without a password. Passwords may have unquoted slashes and signs @."""

_OPTION = re.compile(
    r"([?&;]\w*(?:password|passwd|pwd|secret|token|api[_-]?key|signature)\w*=)[^&;#\s'\"]+",
    re.IGNORECASE,
)


class RedactedStr(str):
    """A text whose repr is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def without_passwords(text: str) -> str:
    """Return a text whose URLs have no login, and no password or token among their options."""
    if "://" not in text:
        return text
    return _OPTION.sub(rf"\1{_HIDDEN}", _LOGIN.sub(f"://{_HIDDEN}@", text))


def safe(value: object) -> object:
    """Return a value whose repr has no password of a URL: itself, or its repr without them."""
    if not isinstance(value, str | tuple | list | dict):
        return value
    shown = repr(value)
    cleaned = without_passwords(shown)
    return value if cleaned == shown else RedactedStr(cleaned)
