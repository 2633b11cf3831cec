"""Errors of names and uses that objects have in other libraries, and not here.

Each family of classes has a table of names, each with what to write in its place. No name of a
table is part of a class: `dir`, `help`, `hasattr` and mocks do not see it, and nothing here runs
before an attribute is missing or an operation is refused.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NoReturn

from mnemic.errors import MissingAttributeError, UnsupportedUseError
from mnemic.reporting.description import quoted
from mnemic.reporting.near_names import suggestion

OTHERWISE = ""
"""The key of what a table says of a name that it has not, and that is near none of the object."""


def tables(file: str) -> dict[str, dict[str, str]]:
    """Return the tables of a file of this folder by their names: what is said of each word."""
    found: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    with open(f"{os.path.dirname(__file__)}/{file}", encoding="utf-8") as lines:  # noqa: PTH120, PTH123 - pathlib is slow to import
        for line in lines:
            words, _, said = line.rstrip("\n").partition(": ")
            if line.startswith("["):
                table = {}
                found |= dict.fromkeys(words.strip("[]").split(), table)
            elif said and not line.startswith("#"):
                table |= dict.fromkeys(words.split() or [OTHERWISE], said)
    return found


_TABLES = tables("habits.txt")
HIT, RESULTS, ADDED = _TABLES["hit"], _TABLES["results"], _TABLES["added"]
STATS, CONTEXT, MEMORY = _TABLES["stats"], _TABLES["context"], _TABLES["memory"]
VECTOR_MAP, EMBEDDER = _TABLES["vector_map"], _TABLES["embedder"]


class AnswersHabits:
    """An object that answers the names that its kind has in other libraries.

    Attributes:
        _habits: A table: what to write in place of those names.
    """

    __slots__ = ()

    _habits: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            return attribute(self, name, self._habits)


class NotPickled:
    """An object that stays in its process, as one that is open or has a key.

    Attributes:
        _not_pickled: What is said of it, in which `{name}` is its class.
    """

    __slots__ = ()

    _not_pickled: ClassVar[str] = (
        "{name} cannot be pickled or copied, because its key would be; make it in the process that "
        "uses it"
    )

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied deeply."""
        raise UnsupportedUseError(self._not_pickled.format(name=type(self).__name__))


def attribute(this: object, name: str, answers: Mapping[str, str]) -> object:
    """Raise the error of an attribute that an object does not have.

    Args:
        this: The object.
        name: The attribute. Of private ones, which protocols ask for, the error is Python's own.
        answers: A table.

    Returns:
        The value, if it is there at the second look-up.

    Raises:
        MissingAttributeError: If it is not.
    """
    if name.startswith("_") or hasattr(type(this), name):  # a property raised AttributeError
        value: object = object.__getattribute__(this, name)
        return value
    raise missing(type(this), name, dir(this), answers)


def missing(
    kind: type, name: str, known: Sequence[str], answers: Mapping[str, str]
) -> MissingAttributeError:
    """Return the error of an attribute that a class, or an object of it, does not have.

    Args:
        kind: The class.
        name: The attribute.
        known: The attributes that there are.
        answers: A table.
    """
    hint = f"; {answers[name]}" if name in answers else ""
    hint = hint or suggestion(name, [each for each in known if not each.startswith("_")])
    hint = hint or f"; {answers[OTHERWISE]}" if OTHERWISE in answers else hint
    message = f"{kind.__name__} has no attribute {quoted(name)}{hint}"
    # With the object Python would add a guess of its own.
    return MissingAttributeError(message, name=name, obj=None)


def attribute_of_vector_map(this: object, name: str) -> object:
    """Raise the error of an attribute that no vector map has; the core calls this too."""
    return attribute(this, name, VECTOR_MAP)


def item(this: object, key: object, answer: str) -> UnsupportedUseError:
    """Return the error of an item of an object that has none by such a key.

    Args:
        this: The object.
        key: What stood in the brackets.
        answer: What to write in its place.
    """
    return UnsupportedUseError(f"{type(this).__name__} has no item for {quoted(key)}; {answer}")


def item_of_record(
    this: object, key: object, noun: str, answers: Mapping[str, str]
) -> UnsupportedUseError:
    """Return the error of an item of a record, whose fields are attributes.

    Args:
        this: The record.
        key: What stood in the brackets.
        noun: How the answer calls the record, such as "hit".
        answers: A table.
    """
    if isinstance(key, str) and hasattr(this, key):
        return item(this, key, f"write {noun}.{key}")
    answer = answers.get(key) if isinstance(key, str) else None
    fields = f"its fields are attributes, such as {noun}.content, and {noun}.to_dict() is a dict"
    return item(this, key, answer or fields)
