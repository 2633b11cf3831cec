"""Passwords in URLs, and their replacement in reprs."""

import re

_HIDDEN = "***"
_LOGIN = r"://(?:[^\s/?#@:]*:\S*@|[^\s/?#]*@)"
"""A user's name, with or without a password. Passwords may have unquoted slashes and signs @."""

_OPTION = r"([?&;])([\w-]+)=[^&;#\s'\"]+"
_HIDDEN_NAMES = r"(?i)password|passwd|pwd|secret|token|api[_-]?key|signature"
# Compiled on first use, and kept by `re`: compiling them takes as long as importing this module.
# Each takes time in proportion to a text: no part of one is read again from another start.


class RedactedStr(str):
    """A text whose repr is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def without_passwords(text: str) -> str:
    """Return a text whose URLs have no login, and no password or token among their options."""
    if "://" not in text:
        return text
    return re.sub(_OPTION, _without_secret, re.sub(r"\S+", _without_logins, text))


def _without_logins(word: re.Match[str]) -> str:
    head, at, rest = word[0].rpartition("@")  # a search behind the last @ would find nothing
    return re.sub(_LOGIN, f"://{_HIDDEN}@", head + at) + rest


def _without_secret(option: re.Match[str]) -> str:
    start, name = option.groups()
    return f"{start}{name}={_HIDDEN}" if re.search(_HIDDEN_NAMES, name) else option[0]


def safe(value: object) -> object:
    """Return a value whose repr has no password of a URL: itself, or its repr without them."""
    if not isinstance(value, str | tuple | list | dict):
        return value
    shown = repr(value)
    cleaned = without_passwords(shown)
    return value if cleaned == shown else RedactedStr(cleaned)
