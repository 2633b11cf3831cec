"""`limit` as a second name of the maximum number of results in a record of options."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from mnemic.errors import InvalidArgumentError
from mnemic.model.named_fields import NamedFields


class LimitAlias(NamedFields):
    """The class of records that take `limit` for a field of another, documented name.

    A record has the documented field alone, so that it is encoded and compared as before.

    Attributes:
        _limit_field: The documented name.
    """

    _limit_field: ClassVar[str]
    _further_names: ClassVar[tuple[str, ...]] = ("limit",)

    if not TYPE_CHECKING:  # the records declare `limit`

        def __call__(cls, *values: object, **named: object) -> object:  # noqa: N805 - a metaclass
            """Make a record, of which `limit` may be given under both names but once."""
            return super().__call__(*values, **without_alias(named, cls._limit_field))


def without_alias(fields: Mapping[str, Any], documented: str) -> dict[str, Any]:
    """Return fields in which a `limit` stands under its documented name.

    Raises:
        InvalidArgumentError: If both names are given.
    """
    named = dict(fields)
    if "limit" in named:
        if documented in named:
            raise InvalidArgumentError(
                f"limit and {documented} are the same option; give one of them"
            )
        named[documented] = named.pop("limit")
    return named
