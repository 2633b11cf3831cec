"""Classes in two forms: `X` with plain methods, and `AsyncX` with the same ones to be awaited."""

import weakref
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

from mnemic.errors import WrongFormError

Other = TypeVar("Other", bound="Twin")


class Twin:
    """Either form of an object, which leads to the other form of the same object."""

    _maker: "weakref.ref[Twin] | None" = None

    def _other_form(self, kind: type[Other]) -> Other:
        """Return the other form, which shares all attributes; the same object each time.

        The form that makes the other one holds it, and is held by it weakly: a circle would keep a
        dropped memory open until the garbage collector runs.
        """
        maker = None if self._maker is None else self._maker()
        if isinstance(maker, kind):
            return maker
        others = vars(self).setdefault("_others", {})
        if kind not in others:
            made = kind.__new__(kind)
            vars(made).update(vars(self), _others={}, _maker=weakref.ref(self))
            others.setdefault(kind, made)  # of several threads, the first one's
        return cast("Other", others[kind])


class WrongForm:
    """A member that a class lacks: looking for it says what to write instead.

    Args:
        hint: The message, in which `{name}` is the class, and `{plain}` and `{awaited}` its forms.
    """

    def __init__(self, hint: str) -> None:
        self._hint = hint

    def __get__(self, instance: object, owner: type) -> NoReturn:
        plain = owner.__name__.removeprefix("Async")
        hint = self._hint.format(name=owner.__name__, plain=plain, awaited=f"Async{plain}")
        raise WrongFormError(hint)


class EnteredPlainly:
    """What `with` enters and `async with` does not."""

    if not TYPE_CHECKING:
        __aenter__ = WrongForm(
            "{name} is entered by 'with'; to await its calls, take {awaited} and 'async with'"
        )


class EnteredAwaited:
    """What `async with` enters and `with` does not."""

    if not TYPE_CHECKING:
        __enter__ = WrongForm(
            "{name} is entered by 'async with'; for plain calls, take {plain} and 'with'"
        )
