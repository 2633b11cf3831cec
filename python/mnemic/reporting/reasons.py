"""Why a program's own function failed, such as its embedder, in words that quote nothing.

The text of its error may hold what the function was given: the content of a memory, or a key. What
is told comes from fixed lists instead: the system's words for its errors, found by number or in the
text, statuses of HTTP, names of classes and of missing modules.
"""

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from mnemic.reporting.description import quoted


class Reason(NamedTuple):
    """Why a function failed.

    Attributes:
        text: The reason.
        advice: What to do.
    """

    text: str
    advice: str


_TEXT_READ = 2000
"""Characters of an error's text in which words of the system are looked for."""

_STATUSES = range(400, 600)
_FAILED_ITSELF = range(500, 600)
_STATUS_NAMES = ("status_code", "status", "code")  # of openai and httpx, aiohttp, urllib

_CALL_IT = "its own message may quote a memory and is not shown: call it with a text to see it"
_LATER = "try again later, or give it more time"
_REACH_IT = "see that the service runs and can be reached from here"
_FILES = "see that its files are there and can be read"

_BY_STATUS: Mapping[int, str] = {
    401: "give it the key of the service",
    403: "its key may lack a right",
    404: "its address and the model's name may be wrong",
    429: "try again later: the service takes no more requests now",
}
_BY_CLASS: Mapping[str, Reason] = {
    "MemoryError": Reason("out of memory", "give it fewer or shorter texts at once"),
    "OutOfMemoryError": Reason("out of memory", "give it fewer or shorter texts at once"),
    "SSLCertVerificationError": Reason("the certificate of the server is not trusted", _REACH_IT),
    "gaierror": Reason("the name of the server is not known", _REACH_IT),
}
_BY_NUMBER: Mapping[int, str] = {
    **dict.fromkeys((errno.ENOENT, errno.EACCES, errno.EISDIR, errno.ENOTDIR), _FILES),
    errno.ETIMEDOUT: _LATER,
}
_OF_NETWORK = (
    errno.ECONNABORTED,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.ENETDOWN,
    errno.ENETUNREACH,
    errno.EPIPE,
    errno.ETIMEDOUT,
)


def reason_of(error: BaseException) -> Reason | None:
    """Return the reason of the innermost error that has one, of those that an error came of."""
    found = (find(each) for each in reversed([*_chain(error)]) for find in _FINDERS)
    return next((reason for reason in found if reason is not None), None)


def why(error: BaseException) -> str:
    """Return the end of a message about a failed embedder: its reason, and what to do."""
    reason = reason_of(error)
    return f"; {_CALL_IT}" if reason is None else f": {reason.text}; {reason.advice}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that it came of, each once; of a group the first."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        inner = each.exceptions[0] if isinstance(each, BaseExceptionGroup) else each.__cause__
        each = inner or (None if each.__suppress_context__ else each.__context__)


def _by_status(error: BaseException) -> Reason | None:
    """Return the reason of an error about a response, as libraries name its status."""
    for holder in (error, _attribute(error, "response")):
        for name in _STATUS_NAMES:
            status = _attribute(holder, name)
            if type(status) is int and status in _STATUSES:
                otherwise = _LATER if status in _FAILED_ITSELF else _CALL_IT
                advice = _BY_STATUS.get(status, otherwise)
                return Reason(f"the service answered {status}", advice)
    return None


def _by_class(error: BaseException) -> Reason | None:
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        return Reason(f"there is no module {quoted(error.name)}", "install it")
    return next((_BY_CLASS[name] for name in _classes(error) if name in _BY_CLASS), None)


def _by_number(error: BaseException) -> Reason | None:
    number = error.errno if isinstance(error, OSError) else None
    return None if number is None or number not in errno.errorcode else _of_system(number)


def _by_text(error: BaseException) -> Reason | None:
    """Return the reason of an error whose text has the system's words for one of the network."""
    try:
        text = str(error)[:_TEXT_READ].lower()
    except Exception:  # noqa: BLE001 - of a library's own class
        return None
    numbers = (number for number in _OF_NETWORK if os.strerror(number).lower() in text)
    return next(map(_of_system, numbers), None)


def _by_time(error: BaseException) -> Reason | None:
    is_late = any(name.endswith(("Timeout", "TimeoutError")) for name in _classes(error))
    return Reason("it was not done in time", _LATER) if is_late else None


_FINDERS: tuple[Callable[[BaseException], Reason | None], ...] = (
    _by_status,
    _by_class,  # before the number: that of an error of certificates is OpenSSL's
    _by_number,
    _by_text,
    _by_time,
)


def _of_system(number: int) -> Reason:
    return Reason(os.strerror(number), _BY_NUMBER.get(number, _REACH_IT))


def _classes(error: BaseException) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


def _attribute(holder: object, name: str) -> object:
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - of a property of a library's own class
        return None
