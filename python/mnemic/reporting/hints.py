"""What callers write in place of a right argument, and what they are told.

Nothing here is read before a call has failed.
"""

from collections.abc import Mapping

from mnemic.reporting.habits import tables

_TABLES = tables("hints.txt")

OTHER_WORDS = {name: words.split() for name, words in _TABLES.pop("words").items()}
"""Words of other libraries for names here, which they are not near to by their letters."""

ADVICE: Mapping[str, Mapping[str, str]] = _TABLES
"""What is said of an argument that a call has not, by the call and the argument."""


def advice(call: str, name: str) -> str | None:
    """Return what to do in place of an argument that a call has not, if it is known.

    Args:
        call: The public name of a class or a method.
        name: The argument.
    """
    kind, dot, method = call.removeprefix("Async").removeprefix("Scoped").partition(".")
    for each in (f"{kind}{dot}{method}", f"{kind}{dot}*"):
        said = ADVICE.get(each, {}).get(name)
        if said is not None:
            return said.format(name=name, method=method)
    return None
