"""Requests to model services over HTTP: one client, retries, limits, keys that nothing shows.

What is sent to which service stands here: its address and keys, checked options, failed requests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import msgspec

from mnemic.errors import (
    EmbeddingServiceError,
    InvalidArgumentError,
    LanguageModelServiceError,
    MissingExtraError,
)
from mnemic.model import validation
from mnemic.reporting.description import must_be
from mnemic.reporting.habits import NotPickled

if TYPE_CHECKING:
    from mnemic.http.transport import Transport

DEFAULT_BASE_URL = "https://api.openai.com/v1"
MAX_KEY_LENGTH = 8192
MAX_URL_LENGTH = 2048

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_KEY = re.compile(r"[\x21-\x7e]+")
_URL = re.compile(r"[\x21-\x7e]+")
_ENDINGS = ("/embeddings", "/chat/completions")
_FIXED = frozenset({"host", "content-length", "transfer-encoding", "connection", "content-type"})


class Variables(NamedTuple):
    """Names of environment variables, the preferred ones first.

    Attributes:
        base_url: Those of the base URL.
        key: Those of the key.
    """

    base_url: tuple[str, ...]
    key: tuple[str, ...]


EMBEDDINGS = Variables(
    ("EMBEDDING_BASE_URL", "OPENAI_BASE_URL"), ("EMBEDDING_API_KEY", "OPENAI_API_KEY")
)
CHAT = Variables(("OPENAI_BASE_URL",), ("OPENAI_API_KEY",))


class Request(NamedTuple):
    """A request.

    Attributes:
        path: Its path below the base URL.
        body: Its JSON.
        texts: The texts in it, which errors do not show.
    """

    path: str
    body: dict[str, Any]
    texts: Sequence[str]


class Service(NotPickled):
    """A service: its address, and the headers of each request, which nothing shows.

    Args:
        base_url: Its base URL; None takes it from the environment, or the default one.
        api_key: Its key; None takes it from the environment, and "" is none.
        headers: Further headers of each request.
        variables: The environment variables.

    Attributes:
        base_url: Its base URL, without a slash at the end.
        secrets: The key and the values of the given headers.

    Raises:
        InvalidArgumentError: If an argument is invalid, or the default service has no key.
    """

    __slots__ = ("_headers", "base_url", "secrets")

    _not_pickled = (
        "what is connected to a service cannot be pickled or copied deeply, because its key would "
        "be; make it in the process that uses it"
    )

    def __init__(
        self,
        base_url: str | None,
        api_key: str | None,
        headers: Mapping[str, str] | None,
        variables: Variables,
    ) -> None:
        given = _variable(variables.base_url) if base_url is None else base_url
        is_given = given is not None and not (isinstance(given, str) and given == "")
        self.base_url: str = _checked_url(given if is_given else DEFAULT_BASE_URL)
        further = _checked_headers(headers)
        key = _checked_key(_variable(variables.key) if api_key is None else api_key)
        has_key = "authorization" in {name.lower() for name in further}
        if not key and not has_key and self.base_url == DEFAULT_BASE_URL:
            raise InvalidArgumentError(
                f"API key required: give api_key=, or set {' or '.join(variables.key)}; a server "
                "of your own, which is named by base_url=, needs none"
            )
        bearer = {"Authorization": f"Bearer {key}"} if key and not has_key else {}
        self._headers = {**bearer, **further}
        self.secrets: tuple[str, ...] = tuple(filter(None, (key, *further.values())))

    @property
    def headers(self) -> dict[str, str]:
        """The headers of each request."""
        return dict(self._headers)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"


def _variable(names: tuple[str, ...]) -> str | None:
    values = (os.environ.get(name, "").strip() for name in names)
    return next((value for value in values if value), None)


def _checked_url(given: object) -> str:
    given = validation.of_kind("base_url", str, "a str", given)
    url = given.strip().rstrip("/")
    parts = _split(url)
    if parts is None:
        raise must_be("base_url", "an address such as http://localhost:11434/v1", given)
    ending = next((each for each in _ENDINGS if parts.path.endswith(each)), None)
    if ending is not None:
        raise InvalidArgumentError(
            f"base_url must be the address without {ending}, which each request adds: "
            f"{url.removesuffix(ending)}"
        )
    if "@" in parts.netloc or "?" in url or "#" in url:
        raise InvalidArgumentError(
            "base_url must have no user name, password, query or fragment, which logs would show; "
            "give a key by api_key=, and anything else by headers="
        )
    return url


def _split(url: str) -> SplitResult | None:
    """Return the parts of an address; None if it is none."""
    if len(url) > MAX_URL_LENGTH or not _URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_address = is_address and parts.port != 0
    except ValueError:  # a port that is no number
        return None
    return parts if is_address else None


def _checked_key(given: object) -> str:
    if given is None:
        return ""
    if not isinstance(given, str):
        raise InvalidArgumentError(f"api_key must be a str or None, got {type(given).__name__}")
    key = given.strip()
    if key and (len(key) > MAX_KEY_LENGTH or not _KEY.fullmatch(key)):
        raise InvalidArgumentError(
            f"api_key must be at most {MAX_KEY_LENGTH} printable ASCII characters without blanks"
        )
    return key


def _checked_headers(given: object) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"headers must be a dict of str, got {type(given).__name__}")
    checked: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise InvalidArgumentError("headers: a name is no header's name, such as X-Api-Key")
        if name.lower() in _FIXED:
            raise InvalidArgumentError(f"headers: {name} is set by the client")
        if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise InvalidArgumentError(f"headers: the value of {name} must be printable ASCII")
        checked[name] = value
    return checked


MAX_SECONDS = 3600.0
MAX_RETRIES = 10


def model_name(given: object) -> str:
    """Return the name of a model."""
    if isinstance(given, str) and not given.strip():
        raise InvalidArgumentError("model name must not be empty")
    return validation.name("model", given)


class Limits(NamedTuple):
    """Limits of requests.

    Attributes:
        timeout: Seconds for a call, with its retries.
        max_retries: Maximum number of retries of a request.
        max_connections: Connections of one event loop at a time; further requests wait.
    """

    timeout: float
    max_retries: int
    max_connections: int

    @classmethod
    def checked(cls, timeout: object, max_retries: object, max_connections: object) -> Limits:
        """Return valid limits."""
        if not validation.is_number(timeout) or not 0 < timeout <= MAX_SECONDS:  # neither is NaN
            raise must_be("timeout", f"seconds, above 0 and at most {MAX_SECONDS:g}", timeout)
        retries = validation.whole("max_retries", max_retries)
        if retries > MAX_RETRIES:
            raise InvalidArgumentError(f"max_retries must be at most {MAX_RETRIES}, got {retries}")
        return cls(
            float(timeout), retries, validation.whole("max_connections", max_connections, minimum=1)
        )


def extra_body(given: object, fixed: set[str]) -> dict[str, Any]:
    """Return further members of a request's JSON.

    Args:
        given: The members, or None.
        fixed: Members that they must not replace.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise must_be("extra_body", "a dict of JSON", given)
    if taken := sorted(fixed & set(given)):
        raise InvalidArgumentError(f"extra_body must not have {', '.join(taken)}")
    try:
        copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(given)))
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgumentError("extra_body must be JSON") from None
    return copied


class ErrorTypes(NamedTuple):
    """The errors of one kind of service.

    Attributes:
        service: Of an error response, or of a connection that failed.
        timeout: Of a request that took too long.
        result: Of a response that is none of the protocol.
    """

    service: type[EmbeddingServiceError | LanguageModelServiceError]
    timeout: type[EmbeddingServiceError | LanguageModelServiceError]
    result: type[Exception]


class RequestFailure(Exception):  # noqa: N818 - callers get another error for it
    """A request failed; inside the transport alone.

    Attributes:
        message: Says why, without keys and texts.
        status: Status of the response; None without one.
        body: Beginning of its body, without keys and texts.
        retry_after: Seconds after which the service takes the next request; None if it names none.
        is_retried: Whether a later request may succeed.
        is_timeout: Whether it took too long.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        body: str = "",
        retry_after: float | None = None,
        is_retried: bool = False,
        is_timeout: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.body = body
        self.retry_after = retry_after
        self.is_retried = is_retried
        self.is_timeout = is_timeout

    def error(self, kinds: ErrorTypes) -> Exception:
        """Return the error that the caller gets."""
        kind = kinds.timeout if self.is_timeout else kinds.service
        return kind(self.message, status=self.status, body=self.body, retry_after=self.retry_after)


def connection(service: Service, kinds: ErrorTypes, limits: tuple[object, ...]) -> Transport:
    """Return what sends requests to a service; nothing is sent yet.

    Args:
        service: The service.
        kinds: The errors that callers get.
        limits: What `Limits` has, unchecked: how long it tries, how often, over how many.

    Raises:
        InvalidArgumentError: If a limit is out of range.
        MissingExtraError: If httpx2 or tenacity is not installed.
    """
    checked = Limits.checked(*limits)
    try:
        from mnemic.http.transport import Transport  # noqa: PLC0415 - needs the extra `http`
    except ImportError as error:
        raise MissingExtraError(
            "models over HTTP need httpx2 and tenacity: python -m pip install 'mnemic[http]'"
        ) from error
    return Transport(service, kinds, checked)
