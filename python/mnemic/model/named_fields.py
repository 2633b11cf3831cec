"""Classes of records that a program makes; their errors name the record and the nearest field."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin

import msgspec

from mnemic.errors import InvalidArgumentError, MnemicError
from mnemic.reporting.near_names import explain_failure

if TYPE_CHECKING:
    from inspect import Parameter

    from msgspec import StructMeta as _StructMeta
else:
    _StructMeta = type(msgspec.Struct)  # its name is not public in every version


class NamedFields(_StructMeta):
    """The class of records that a program makes itself.

    A field that does not exist, or is missing, raises `ArgumentMismatchError`. Making a record
    takes 1 µs more than without it, so records of results are of another class.

    Attributes:
        _aliases: Further names of fields, which making a record takes, each with its field.
        _first: The field that may be given by position, where all else is given by name.
    """

    _aliases: ClassVar[Mapping[str, str]] = {}
    _first: ClassVar[str | None] = None

    if not TYPE_CHECKING:  # the records declare their fields

        def __call__(cls, *values: object, **named: object) -> object:  # noqa: N805 - of a metaclass
            """Make a record."""
            try:
                if cls._aliases:
                    named = without_aliases(named, cls._aliases)
                if cls._first is not None and len(values) == 1 and cls._first not in named:
                    values, named = (), {cls._first: values[0], **named}
                return super().__call__(*values, **named)
            except (TypeError, MnemicError) as error:
                explain_failure(error, cls, values, named, tuple(cls._aliases))
                raise


def without_aliases(given: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """Return fields by their documented names.

    Raises:
        InvalidArgumentError: If one is given by both names.
    """
    named = dict(given)
    for alias, field in aliases.items():
        if alias in named:
            if field in named:
                raise InvalidArgumentError(
                    f"{alias} and {field} are the same option; give one of them"
                )
            named[field] = named.pop(alias)
    return named


class ContentFirst(NamedFields):
    """The class of memories: the content may be given by position, all else by name."""

    _first = "content"

    if not TYPE_CHECKING:  # the record declares what it takes

        @property
        def __signature__(cls) -> object:  # noqa: N805 - of a metaclass
            """The signature, without the declarations of the fields."""
            from inspect import Parameter, Signature  # noqa: PLC0415 - takes 12 ms

            fields = {name: _bare(each) for name, each in super().__signature__.parameters.items()}
            content = fields.pop("content").replace(kind=Parameter.POSITIONAL_OR_KEYWORD)
            return Signature([content, *fields.values()])


def _bare(parameter: "Parameter") -> "Parameter":
    """Return a parameter with the type alone, out of `Annotated`."""
    kind = parameter.annotation
    return parameter.replace(
        annotation=get_args(kind)[0] if get_origin(kind) is Annotated else kind
    )
