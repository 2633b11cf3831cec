"""Expanders given as a function or as a dict of synonyms."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import islice
from typing import TypeAlias, cast

from mnemic._core import fold
from mnemic.errors import ExpanderError, InvalidArgumentError
from mnemic.model import ExpandedQuery, validation
from mnemic.reporting.description import described
from mnemic.reporting.near_names import checks_arguments
from mnemic.retrieval.expansion import (
    CorpusExpander,
    Expander,
    FindRelated,
    Ours,
    spaced_words,
    with_terms,
)
from mnemic.threads.calling import called

ExpandFunction: TypeAlias = Callable[[str], Iterable[str] | Awaitable[Iterable[str]]]
"""Returns texts that belong to a query: a function, or a coroutine function."""

Synonyms: TypeAlias = Mapping[str, str | Iterable[str]]
"""Texts by the word or phrase of a query that they are added for."""

AnyExpander: TypeAlias = Expander | ExpandFunction | Synonyms
"""An expander as callers give it."""

MAX_TEXTS = 32
"""Texts of one expansion that are used, the first ones."""

MAX_TEXT_LENGTH = 500
"""Maximum characters of one text of an expansion."""


def expander_of(given: AnyExpander | None) -> Expander:
    """Return the expander that a caller gave; None is that of the memories themselves.

    Raises:
        InvalidArgumentError: If it is neither a function, a dict of synonyms nor an object with
            `expand`.
    """
    if given is None:
        return CorpusExpander()
    if callable(getattr(given, "expand", None)):
        return cast("Expander", given)
    if isinstance(given, Mapping):
        return SynonymExpander(given)
    if callable(given):
        return FunctionExpander(given)
    raise InvalidArgumentError(
        "expander must be a function from a text to a list of texts, a dict of synonyms, or an "
        f"object with expand, got {described(given)}"
    )


class FunctionExpander(Ours):
    """Adds the texts that a function returns for a query.

    A plain function runs in another thread if an event loop waits for it.

    Args:
        function: The function; a coroutine function is awaited.
    """

    def __init__(self, function: ExpandFunction) -> None:
        self._function = function

    async def expand(self, query: str, find_related: FindRelated) -> ExpandedQuery:
        """Return the query with the function's texts; see `Expander`.

        Raises:
            ExpanderError: If the function returns no list of texts.
        """
        del find_related  # an expander of the contract gets it
        return _expanded(query, _checked_texts(await called(self._function, query)))


class SynonymExpander(Ours):
    """Adds the synonyms of the words and phrases of a query.

    Case and width of characters are ignored. In scripts without spaces a key is found anywhere;
    elsewhere only as whole words. A synonym is not looked up itself.

    Args:
        synonyms: Texts, or one text, by word or phrase.

    Raises:
        InvalidArgumentError: If a key is blank, or a value neither a text nor a list of texts.
    """

    @checks_arguments
    def __init__(self, synonyms: Synonyms) -> None:
        self._texts: dict[str, tuple[str, ...]] = {}
        for key, given in synonyms.items():
            phrase = spaced_words(validation.text("a key of the synonyms", key)).strip()
            if not phrase:
                raise InvalidArgumentError("a key of the synonyms must have a word")
            texts = _synonyms(given)
            self._texts[phrase] = (*self._texts.get(phrase, ()), *texts)
        self._unspaced = [key for key in self._texts if _UNSPACED.search(key)]
        self._max_words = max((len(key.split()) for key in self._texts), default=0)

    async def expand(self, query: str, find_related: FindRelated) -> ExpandedQuery:
        """Return the query with the synonyms of its words; see `Expander`."""
        del find_related  # as above
        found = dict.fromkeys([*self._phrases(query), *self._parts(query)])
        return _expanded(query, [text for key in found for text in self._texts[key]])

    def _phrases(self, query: str) -> Iterable[str]:
        words = spaced_words(query).split()
        for first in range(len(words)):
            for last in range(first + 1, min(first + self._max_words, len(words)) + 1):
                phrase = " ".join(words[first:last])
                if phrase in self._texts:
                    yield phrase

    def _parts(self, query: str) -> Iterable[str]:
        folded = fold(query)
        return (key for key in self._unspaced if key in folded)


def _synonyms(given: object) -> list[str]:
    texts = [given] if isinstance(given, str) else validation.items("the synonyms of a key", given)
    return [_checked_text(at, text, InvalidArgumentError) for at, text in enumerate(texts)]


def _checked_texts(returned: object) -> list[str]:
    """Return the first texts that a function returned."""
    is_many = isinstance(returned, Iterable) and not isinstance(returned, str | bytes | Mapping)
    if not is_many:
        raise ExpanderError(
            f"an expander must return a list of texts, [] for none, got {described(returned)}"
        )
    texts = islice(cast("Iterable[object]", returned), MAX_TEXTS)
    return [_checked_text(at, text, ExpanderError) for at, text in enumerate(texts)]


def _checked_text(at: int, text: object, error: type[ExpanderError | InvalidArgumentError]) -> str:
    if not isinstance(text, str) or len(text) > MAX_TEXT_LENGTH:
        raise error(
            f"text {at} of an expansion must be a text of at most {MAX_TEXT_LENGTH} characters, "
            f"got {described(text)}"
        )
    if "\0" in text or validation.lone_surrogate(text) is not None:
        raise error(f"text {at} of an expansion holds a NUL character or a lone surrogate")
    return text


def _expanded(query: str, texts: Iterable[str]) -> ExpandedQuery:
    """Return a query with texts: without its own words and repetitions, as long as they fit."""
    added: list[str] = []
    known, length = spaced_words(query), len(query)
    for text in texts:
        words = spaced_words(text)
        fits = length + 1 + len(text) <= validation.MAX_QUERY_LENGTH
        if words.strip() and words not in known and fits and len(added) < MAX_TEXTS:
            added.append(text)
            known, length = f"{known}\n{words}", length + 1 + len(text)
    return with_terms(query, added, 1.0 if added else 0.0)


_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Characters of scripts that write words without spaces, or with endings: Thai to Hangul."""
