"""Redaction: personal data and secrets in a text are replaced before a prompt holds it."""

import functools
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from mnemic._core import Redactor
from mnemic.errors import InvalidArgumentError
from mnemic.model import validation
from mnemic.records import NamedFields, Record
from mnemic.reporting.description import must_be

Check = Literal["luhn", "iban", "ipv4", "ipv6"]

KNOWN_PATTERNS: Mapping[str, str] = MappingProxyType(
    {
        "ssn": "Numbers of the United States' social security: 123-45-6789.",
        "card": "Numbers of payment cards: 13 to 19 digits, in one or in groups, with a "
        "valid check digit (Luhn).",
        "email": "Addresses of e-mail, in any script.",
        "phone": "Numbers of telephones: international ones with + or 00, and common national "
        "forms; not dates, and without separators no numbers of orders.",
        "iban": "International bank account numbers of a country's length with valid check digits.",
        "ipv4": "IPv4 addresses: four numbers from 0 to 255.",
        "ipv6": "IPv6 addresses, short and long, with an IPv4 address or a zone in them.",
        "api_key": "Keys and tokens of services with a known prefix, JSON web tokens, bearer "
        "tokens and private keys in PEM.",
    }
)
"""The patterns that have a name, with a sentence each."""

DEFAULT_PATTERNS = ("ssn", "card", "email")
"""The patterns that a redaction uses if none are given."""

_CACHED = 64
_SHOWN = 60
_SIMILARITY = 0.8


class RedactionPattern(Record, frozen=True, metaclass=NamedFields):
    r"""A pattern of your own.

    Attributes:
        name: A name for messages.
        regex: A regular expression of the Rust crate regex: the common syntax, with Unicode classes
            such as `\d`, `\w` and `\p{Greek}`, and `(?i)` to ignore case; without look-around and
            back-references, because a search with them can take exponential time. It may not match
            the empty text.
        check: A check that a match must pass: "luhn" (check digit of payment cards), "iban"
            (country, length and check digits), "ipv4", "ipv6" (addresses). None for no check.
    """

    name: str
    regex: str
    check: Check | None = None

    def __post_init__(self) -> None:
        validation.text("name", self.name)
        validation.text("regex", self.regex)
        if self.check is not None:
            validation.text("check", self.check)


class Redaction(Record, frozen=True, metaclass=NamedFields):
    """Patterns, and the text that takes the place of their matches.

    The patterns are compiled when the record is made, even if it is not enabled. Matches that
    overlap become one replacement, so that no part of a match is left over.

    Attributes:
        enabled: Whether texts are redacted.
        patterns: Names of `KNOWN_PATTERNS`, regular expressions, or `RedactionPattern`s.
        replacement: The text in place of each match, as it is: `$1` stays `$1`.

    Raises:
        InvalidArgumentError: If a pattern is invalid, too large or matches the empty text; the
            message names it and the cause.
    """

    enabled: bool = False
    patterns: tuple[str | RedactionPattern, ...] = DEFAULT_PATTERNS
    replacement: str = "[REDACTED]"

    def __post_init__(self) -> None:
        validation.flag("enabled", self.enabled)
        validation.text("replacement", self.replacement)
        kinds = str | RedactionPattern
        patterns = tuple(
            validation.items("patterns", self.patterns, kinds, "a str or a RedactionPattern")
        )
        msgspec.structs.force_setattr(self, "patterns", patterns)
        _redactor(patterns, self.replacement)


def redact(text: str, redaction: Redaction) -> str:
    """Return a text with the matches of a redaction's patterns replaced.

    Without a match, or if the redaction is not enabled, that is the text itself. Characters without
    a picture, line breaks and emphasis hide no match, as docs/build/policy.md says in detail;
    invisible characters beside a match are replaced with it.

    Args:
        text: The text.
        redaction: The patterns and the replacement.

    Raises:
        InvalidArgumentError: If the text holds a lone surrogate.
        RedactionBudgetError: If a pattern reads the text too many times.
    """
    if not isinstance(text, str):
        raise must_be("text", "a str", text)
    if not _checked(redaction).enabled:
        return text
    return _redactor(redaction.patterns, redaction.replacement).redact(text)[0]


def redact_batch(texts: Iterable[str], redaction: Redaction) -> list[tuple[str, int]]:
    """Redact each text as `redact` does; each with the number of replacements in it."""
    if not _checked(redaction).enabled:
        return [(text, 0) for text in texts]
    return _redactor(redaction.patterns, redaction.replacement).redact_batch(texts)


def _checked(redaction: object) -> Redaction:
    if isinstance(redaction, Redaction):
        return redaction
    raise must_be("redaction", "a Redaction", redaction)


@functools.lru_cache(_CACHED)
def _redactor(patterns: tuple[str | RedactionPattern, ...], replacement: str) -> Redactor:
    sources = [_source(index, pattern) for index, pattern in enumerate(patterns)]
    return Redactor(sources, replacement)


def _source(index: int, pattern: object) -> tuple[str, str | None, str | None]:
    if isinstance(pattern, RedactionPattern):
        return pattern.name, pattern.regex, pattern.check
    regex = validation.text(f"patterns[{index}]", pattern)
    if regex in KNOWN_PATTERNS:
        return regex, None, None
    _refuse_misspelt_name(index, regex)
    shown = regex if len(regex) <= _SHOWN else f"{regex[:_SHOWN]}…"
    return f"patterns[{index}]: {shown}", regex, None


def _refuse_misspelt_name(index: int, word: str) -> None:
    """Refuse a word that looks like a known name: as an expression it would match itself alone."""
    from difflib import get_close_matches  # noqa: PLC0415 - for patterns of the user alone

    near = get_close_matches(word.lower(), KNOWN_PATTERNS, 1, _SIMILARITY)
    if near and re.fullmatch(r"[\w-]+", word):
        raise InvalidArgumentError(
            f"patterns[{index}]: there is no pattern {word!r}; did you mean {near[0]!r}? There are "
            f"{', '.join(KNOWN_PATTERNS)}; an expression that matches the word itself is "
            f"'(?:{word})'"
        )
