"""Enumerations whose members are words with numbers."""

from enum import Enum
from functools import total_ordering
from typing import Self

from mnemic.errors import InvalidEntryError
from mnemic.reporting.description import quoted


@total_ordering
class NumberedEnum(Enum):
    """Enumeration of words, each with a number that files and indexes store.

    The value of a member is its word, so that JSON has words. A member is equal to its number,
    ordered by it, and found by either: `MemoryType(0) is MemoryType("fact")`.
    """

    _value_: str
    _noun: str  # pyright: ignore[reportUninitializedInstanceVariable] - set for each class
    number: int  # pyright: ignore[reportUninitializedInstanceVariable] - set for each member

    def __init_subclass__(cls, *, noun: str = "value") -> None:
        """Make an enumeration; errors name the field by its noun."""
        super().__init_subclass__()
        cls._noun = noun

    def __new__(cls, word: str, number: int) -> Self:
        """Make a member whose value is the word."""
        member = object.__new__(cls)
        member._value_ = word
        member.number = number
        return member

    @classmethod
    def numbered(cls, number: int) -> Self:
        """Return the member with a number.

        Args:
            number: The stored number.

        Raises:
            ValueError: If there is none.
        """
        for member in cls:
            if member.number == number:
                return member
        raise ValueError(f"{number} is no number of a {cls.__name__}")

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return the member that a value names.

        Args:
            value: The member, its word in any case, or its number.

        Raises:
            InvalidEntryError: If there is none.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str) and value.upper() in cls.__members__:
            return cls[value.upper()]
        if isinstance(value, int) and not isinstance(value, bool) and value in map(int, cls):
            return cls.numbered(value)
        known = ", ".join(each.name.lower() for each in cls)
        raise InvalidEntryError(f"{cls._noun} {quoted(value)} is unknown; it is one of {known}")

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if isinstance(value, int) and not isinstance(value, bool):
            return cls.numbered(value)
        return None

    def __eq__(self, other: object) -> bool:
        """Whether it is the same member, or a member's number."""
        return self is other or (isinstance(other, int) and self.number == other)

    def __hash__(self) -> int:
        """Hash of the number, which is equal to it."""
        return self.number

    def __lt__(self, other: object) -> bool:
        """Whether the number is lower, beside a member of the same enumeration or a number."""
        if isinstance(other, type(self)):
            return self.number < other.number
        return self.number < other if isinstance(other, int) else NotImplemented

    def __bool__(self) -> bool:
        """Whether the number is not 0, as of an int."""
        return self.number != 0

    def __int__(self) -> int:
        """The number."""
        return self.number

    def __index__(self) -> int:
        """The number."""
        return self.number

    def __str__(self) -> str:
        """The word."""
        return self._value_
