"""Token counters: an estimate by script, and the count of a model's own tokenizer."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol, Self, TypeAlias, final

from mnemic._core import estimate_tokens
from mnemic.errors import InvalidArgumentError, MissingExtraError
from mnemic.model import validation
from mnemic.protocols import TokenCounter
from mnemic.reporting.near_names import checks_arguments


@final
class EstimatedTokens:
    """Estimates by script, without a vocabulary; see docs/explain/context.md for its accuracy.

    The estimate of two texts put together is at least that of either, and at most their sum.
    """

    def count(self, text: str, /) -> int:
        """Return the estimate: 0 for an empty text, else at least 1.

        Raises:
            InvalidArgumentError: If the text holds a lone surrogate.
        """
        return estimate_tokens(text)


Count: TypeAlias = Callable[[str], int]


def count_of(counter: TokenCounter | None) -> Count:
    """Return the function of a counter; that of the estimate for None.

    Raises:
        InvalidArgumentError: If the counter has no method `count`. The function raises it if a
            result is not an int, or is negative.
    """
    if counter is None or isinstance(counter, EstimatedTokens):
        return estimate_tokens
    used: TokenCounter = validation.capable("counter", counter, "count")
    return lambda text: validation.whole("the counter's answer", used.count(text))


class Tokenizer(Protocol):
    """The part of a given `tokenizers.Tokenizer` that is used: it is copied."""

    def to_str(self) -> str:
        """Return the tokenizer as JSON."""
        ...


@final
class TokenizerTokens:
    """Counts with a tokenizer of the `tokenizers` library, special tokens excluded.

    It counts with a copy that neither truncates nor pads, so the given tokenizer is not changed.
    Thread-safe.

    Args:
        tokenizer: A `tokenizers.Tokenizer`.

    Raises:
        MissingExtraError: If tokenizers is not installed.
        InvalidArgumentError: If `tokenizer` is not one.
    """

    @checks_arguments
    def __init__(self, tokenizer: Tokenizer, /) -> None:
        library = _library()
        try:
            copy = library.Tokenizer.from_str(tokenizer.to_str())
        except Exception as error:  # the library raises bare exceptions
            raise InvalidArgumentError(
                f"tokenizer must be a tokenizers.Tokenizer, got {type(tokenizer).__name__}: {error}"
            ) from error
        copy.no_truncation()
        copy.no_padding()
        self._tokenizer = copy

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], /) -> Self:
        """Make a counter from a `tokenizer.json`.

        Args:
            path: The file.

        Raises:
            MissingExtraError: If tokenizers is not installed.
            InvalidArgumentError: If the file cannot be read as a tokenizer.
        """
        library = _library()
        try:
            tokenizer = library.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare exceptions
            raise InvalidArgumentError(f"{path!s} is no tokenizer file: {error}") from error
        return cls(tokenizer)

    def count(self, text: str, /) -> int:
        """Return the number of tokens."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)


def _library() -> Any:
    try:
        return import_module("tokenizers")
    except ImportError as error:
        raise MissingExtraError(
            "counting with a tokenizer needs tokenizers: python -m pip install 'mnemic[tokens]'"
        ) from error
