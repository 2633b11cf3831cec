"""The range of an option of a record: its values, its check and its message."""

from collections.abc import Collection
from typing import NamedTuple

from mnemic.errors import InvalidArgumentError
from mnemic.model.validation import is_number
from mnemic.reporting.description import must_be, quoted
from mnemic.reporting.near_names import suggestion


def check_choice(path: str, given: object, words: Collection[str]) -> None:
    """Raise if the value of an option is none of its words; the message has the nearest one."""
    if not (isinstance(given, str) and given in words):
        raise InvalidArgumentError(
            f"{path} must be one of {', '.join(words)}, got {quoted(given)}"
            f"{suggestion(given, words)}"
        )


class Range(NamedTuple):
    """The values of a numeric option.

    Attributes:
        minimum: Smallest accepted value.
        maximum: Largest accepted value.
        recommended: Smallest and largest recommended value; None recommends all.
        is_whole: Whether it is an int.
        word: A word that is accepted too; None accepts none.
        may_be_none: Whether None is accepted.
        unit: Unit of the value, for messages.
        excludes_minimum: Whether the minimum itself is refused.
    """

    minimum: float
    maximum: float
    recommended: tuple[float, float] | None = None
    is_whole: bool = False
    word: str | None = None
    may_be_none: bool = False
    unit: str = ""
    excludes_minimum: bool = False

    def __str__(self) -> str:
        noun = "a whole number" if self.is_whole else "a number"
        unit = f" of {self.unit}" if self.unit else ""
        ends = f" from {self.minimum:g} to {self.maximum:g}"
        if self.excludes_minimum:
            ends = f" above {self.minimum:g}, at most {self.maximum:g}"
        advice = ""
        if self.recommended is not None:
            smallest, largest = self.recommended
            advice = f" (recommended: {smallest:g} to {largest:g})"
        words = ([] if self.word is None else [repr(self.word)]) + ["None"] * self.may_be_none
        return " or ".join([f"{noun}{unit}{ends}{advice}", *words])

    def checked(self, path: str, given: object) -> float | str | None:
        """Return a value of the range.

        Raises:
            InvalidArgumentError: If it is none.
        """
        if given is None and self.may_be_none:
            return None
        if isinstance(given, str) and given == self.word:
            return given
        is_excluded = self.excludes_minimum and given == self.minimum
        if is_number(given) and self.minimum <= given <= self.maximum and not is_excluded:
            if not self.is_whole:
                return float(given)
            if isinstance(given, int):
                return given
        raise must_be(path, str(self), given, show=quoted)

    def advice(self, path: str, value: object) -> str | None:
        """Return a sentence about an accepted value outside the recommended range."""
        if self.recommended is None or not is_number(value):
            return None
        smallest, largest = self.recommended
        if smallest <= value <= largest:
            return None
        return f"{path}={value:g} is outside the recommended range from {smallest:g} to {largest:g}"
