"""Sends requests of JSON to a service, within a time limit, and repeats those that may succeed."""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from weakref import WeakSet

import httpx2
import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from mnemic.http import ErrorTypes, RequestFailure
from mnemic.http.redaction import hiding_responses, keep_out_of_logs, shown_body, without_secrets
from mnemic.http.responses import InvalidResponse
from mnemic.reporting.reasons import reason_of
from mnemic.threads.background import running_loop
from mnemic.threads.locks import Lock

if TYPE_CHECKING:
    import ssl
    from asyncio import AbstractEventLoop
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from mnemic.http import Limits, Request, Service


MAX_PAUSE = 60.0
"""Seconds at most without a request, however long a service wants; later ones are tried."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"
_RESETS = ("requests", "tokens")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a service takes the next request; None if it names none.

    Read are `retry-after-ms`, `Retry-After` in seconds or as a date, and the resets of the limits
    that are used up (`x-ratelimit-remaining-…`, `x-ratelimit-reset-…`).

    Args:
        headers: Headers of a response, found by lower-case names.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    named = headers.get("retry-after")
    if named is not None:
        seconds = _number(named)
        return _seconds_until(named, headers.get("date")) if seconds is None else seconds
    return max(filter(None, (_reset(headers, what) for what in _RESETS)), default=None)


def _reset(headers: Mapping[str, str], what: str) -> float | None:
    if _number(headers.get(f"x-ratelimit-remaining-{what}")) != 0:
        return None
    named = headers.get(f"x-ratelimit-reset-{what}", "").strip()
    if re.fullmatch(f"(?:{_PART})+", named):
        return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, named))
    return _number(named)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(number, 0.0) if isfinite(number) else None


def _seconds_until(date: str, now: str | None) -> float | None:
    """Return the seconds to a date, by the service's own clock if it names its time."""
    until = _time(date)
    begin = _time(now or "") or datetime.now(UTC)
    return None if until is None else max((until - begin).total_seconds(), 0.0)


def _time(text: str) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


class Pause:
    """The time before which a service wants no request.

    Threads share it without a lock, which a fork might leave locked; of two times that are noted at
    once either may be kept.
    """

    def __init__(self) -> None:
        self._until = 0.0

    def extend(self, seconds: float) -> None:
        """Make the pause last for at least these seconds from now, at most `MAX_PAUSE`."""
        self._until = max(self._until, time.monotonic() + min(seconds, MAX_PAUSE))

    @property
    def seconds_left(self) -> float:
        """Seconds until the next request; 0 if it may be sent."""
        return max(self._until - time.monotonic(), 0.0)


IDLE_SECONDS = 30.0
"""Seconds after which an unused connection is closed."""

CONNECT_SECONDS = 5.0

CLOSE_SECONDS = 10.0
"""Seconds that `close` waits for the loop of another thread."""


class _OpenClient(NamedTuple):
    client: httpx2.AsyncClient
    keeper: AsyncGenerator[None, None]


class Clients:
    """Clients by event loop, made by the first request of each.

    A connection belongs to the loop that opened it. A client is closed with its loop, where
    `asyncio.run` or a `Runner` ends that, and a child process makes clients of its own.

    Args:
        make: Makes a client.
    """

    def __init__(self, make: Callable[[], httpx2.AsyncClient]) -> None:
        self._make = make
        self._lock = Lock()
        self._clients: dict[AbstractEventLoop, _OpenClient] = {}
        self.is_closed = False
        _all.add(self)

    async def client(self) -> httpx2.AsyncClient:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        open_client = self._clients.get(loop)
        if open_client is None:
            client = self._make()
            open_client = _OpenClient(client, self._keep(loop, client))
            with self._lock:
                self._forget_closed_loops()
                self._clients[loop] = open_client
            await anext(open_client.keeper)
        return open_client.client

    async def _keep(
        self, loop: AbstractEventLoop, client: httpx2.AsyncClient
    ) -> AsyncGenerator[None, None]:
        """Close a client when this generator is closed, as a loop closes all at its end."""
        try:
            yield
        finally:
            with self._lock:
                self._clients.pop(loop, None)
            await client.aclose()

    def _forget_closed_loops(self) -> None:
        for loop in [loop for loop in self._clients if loop.is_closed()]:
            del self._clients[loop]

    async def aclose(self) -> None:
        """Close all clients. Repeated calls have no effect."""
        self.is_closed = True
        here = asyncio.get_running_loop()
        for loop, open_client in self._open_clients():
            if loop is here:
                await open_client.keeper.aclose()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(open_client.keeper.aclose(), loop)
                await asyncio.wait([asyncio.wrap_future(closing)], timeout=CLOSE_SECONDS)

    def close(self) -> None:
        """Do the same from outside of an event loop; in one, its client is closed by its next turn.

        A loop that does not run keeps its client.
        """
        self.is_closed = True
        here = running_loop()
        for loop, open_client in self._open_clients():
            if loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(open_client.keeper.aclose(), loop)
                if loop is not here:
                    with suppress(Exception):
                        closing.result(CLOSE_SECONDS)

    def _open_clients(self) -> list[tuple[AbstractEventLoop, _OpenClient]]:
        with self._lock:
            return list(self._clients.items())

    def inherit(self) -> None:
        """Forget the clients in a child process: their connections are its parent's."""
        self._lock = Lock()
        self._clients = {}


_all: WeakSet[Clients] = WeakSet()


def _inherit() -> None:
    for clients in list(_all):
        clients.inherit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_inherit)


@cache
def ssl_context() -> ssl.SSLContext:
    """Return the process's one context, which takes some 50 ms to make."""
    return httpx2.create_ssl_context()


def make_client(max_connections: int) -> httpx2.AsyncClient:
    """Return a client; proxies are those of the environment, and redirects are not followed.

    Args:
        max_connections: Connections at a time; further requests wait for one of them.
    """
    return httpx2.AsyncClient(
        verify=ssl_context(),
        follow_redirects=False,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),  # the whole request has its limit
        limits=httpx2.Limits(
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=IDLE_SECONDS,
        ),
    )


Result = TypeVar("Result")

MAX_RESPONSE = 64 * 1024 * 1024
"""Bytes of a response; 2,048 vectors of 3,072 numbers in JSON have a little more than half."""

MAX_ERROR = 64 * 1024
"""Bytes of an error response that are read."""

_OK = range(200, 300)
_REDIRECTS = range(300, 400)
_LOST = ("Server disconnected", "peer closed connection", "incomplete chunked")
"""Beginnings of what the client says of a response that ended too early."""

_ADVICE = {
    401: "; give the key of this service by api_key=",
    403: "; the key may lack a right",
    404: "; base_url may lack a part such as /v1, or the service the model",
    413: "; a smaller batch_size= makes smaller requests",
    422: "; a smaller batch_size= may help",
}


class Transport:
    """Sends requests to one service, from any number of event loops.

    Args:
        service: The service.
        kinds: The errors that callers get.
        limits: How long it tries, how often, and over how many connections.
    """

    def __init__(self, service: Service, kinds: ErrorTypes, limits: Limits) -> None:
        self._service = service
        self._kinds = kinds
        self._timeout = limits.timeout
        self._max_retries = limits.max_retries
        self._pause = Pause()
        ssl_context()  # now, rather than in an event loop
        self._clients = Clients(lambda: make_client(limits.max_connections))
        keep_out_of_logs(service.secrets)

    async def post(self, request: Request, decode: Callable[[bytes], Result]) -> Result:
        """Return the decoded response to a request.

        A cancellation ends it at once.

        Args:
            request: The request.
            decode: Decodes the response's body; raises `InvalidResponse`.
        """
        try:
            return decode(await self._within_timeout(request))
        except RequestFailure as failure:
            error = failure.error(self._kinds)
        except InvalidResponse as invalid:
            error = self._kinds.result(str(invalid))
        # Raised out here, so that it is not chained to an error that holds the request.
        raise error

    async def aclose(self) -> None:
        """Close all connections. Repeated calls have no effect."""
        await self._clients.aclose()

    def close(self) -> None:
        """Do the same from outside of an event loop."""
        self._clients.close()

    async def _within_timeout(self, request: Request) -> bytes:
        if self._clients.is_closed:
            raise RequestFailure("it is closed")
        deadline = time.monotonic() + self._timeout
        try:
            async with asyncio.timeout(self._timeout):
                return await retried(
                    lambda: self._attempt(request, deadline),
                    max_retries=self._max_retries,
                    deadline=deadline,
                )
        except TimeoutError:
            raise RequestFailure(
                f"{self._address} did not respond within {self._timeout:g} s", is_timeout=True
            ) from None

    async def _attempt(self, request: Request, deadline: float) -> bytes:
        await self._wait_for_pause(deadline)
        try:
            with hiding_responses():
                return await self._sent(request)
        except httpx2.TimeoutException:
            message = f"{self._address} took no connection in time"
            failure = RequestFailure(message, is_timeout=True)
        except (httpx2.HTTPError, httpx2.InvalidURL, RuntimeError) as error:
            failure = self._connection_failure(error)
        raise failure

    async def _wait_for_pause(self, deadline: float) -> None:
        """Wait while the service wants no requests; fail at once if that is too long."""
        seconds = self._pause.seconds_left
        if time.monotonic() + seconds >= deadline:
            raise RequestFailure(
                f"{self._address} takes no requests for another {seconds:.1f} s (rate limit), and "
                "the time limit is shorter; nothing was sent",
                status=429,
                retry_after=seconds,
            )
        if seconds:
            await asyncio.sleep(seconds)

    async def _sent(self, request: Request) -> bytes:
        client = await self._clients.client()
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # so that no small response becomes a huge one
            **self._service.headers,
        }
        url = f"{self._service.base_url}/{request.path}"
        content = msgspec.json.encode(request.body)
        async with client.stream("POST", url, content=content, headers=headers) as response:
            is_ok = response.status_code in _OK
            body = await _read(response, MAX_RESPONSE if is_ok else MAX_ERROR)
        if not is_ok:
            raise self._error_response(request, response, body)
        if len(body) > MAX_RESPONSE:
            raise InvalidResponse(f"the response has more than {MAX_RESPONSE} bytes")
        return body

    def _error_response(
        self, request: Request, response: httpx2.Response, body: bytes
    ) -> RequestFailure:
        status = response.status_code
        named = retry_after(response.headers)
        is_retried = status in RETRIED_STATUSES
        if named is not None and is_retried:
            self._pause.extend(named)
        shown = shown_body(body, self._service.secrets, request.texts)
        later = "" if not named else f"; it takes the next request in {round(named, 1):g} s"
        return RequestFailure(
            f"{self._address} returned {status}{_advice(status)}{later}"
            + (f": {shown}" if shown else ""),
            status=status,
            body=shown,
            retry_after=named,
            is_retried=is_retried,
        )

    def _connection_failure(self, error: Exception) -> RequestFailure:
        is_closed = self._clients.is_closed
        is_lost = isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError)
        told = _told(error)
        told = without_secrets(str(error), self._service.secrets) if told is None else told
        return RequestFailure(
            "it was closed during a request"
            if is_closed
            else f"{self._address} cannot be reached: {type(error).__name__}: {told}",
            is_retried=is_lost and not is_closed,
        )

    @property
    def _address(self) -> str:
        return f"the service at {self._service.base_url}"


async def _read(response: httpx2.Response, limit: int) -> bytes:
    """Return the body; one with more bytes than the limit is cut behind it."""
    parts, size = list[bytes](), 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > limit:
            break
    return b"".join(parts)[: limit + 1]


def _told(error: Exception) -> str | None:
    """Return why no response came, without words of the service; None where there are none."""
    reason = reason_of(error)
    if reason is not None:
        return reason.text
    if isinstance(error, httpx2.ProxyError):
        return "the proxy refused the connection"
    if isinstance(error, httpx2.RemoteProtocolError):
        words = str(error)
        return words if words.startswith(_LOST) else "its response is no HTTP"
    return None


def _advice(status: int) -> str:
    if status in _REDIRECTS:
        return "; redirects are not followed, so give the new address by base_url="
    return _ADVICE.get(status, "")


FIRST_BACKOFF = 0.5
MAX_BACKOFF = 8.0
"""Seconds before the first retry, doubled with each further one, and at most."""

JITTER = 0.25
"""The share by which a wait is shorter or longer by chance, so that clients that failed together do
not come back together. A time that the service names is never shortened."""

RETRIED_STATUSES = frozenset({429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed; 529 is "overloaded" of some services."""

_random = random.Random()  # noqa: S311 - no secret


async def retried(
    attempt: Callable[[], Awaitable[Result]], *, max_retries: int, deadline: float
) -> Result:
    """Return the result of the first attempt that succeeds.

    Args:
        attempt: Sends the request.
        max_retries: Maximum number of further attempts.
        deadline: In seconds of `time.monotonic()`; no wait goes beyond it.

    Raises:
        RequestFailure: That of the last attempt.
    """

    async def attempted() -> Result:  # tenacity awaits coroutine functions alone
        return await attempt()

    def is_last(state: RetryCallState) -> bool:
        is_late = time.monotonic() + state.upcoming_sleep >= deadline
        return is_late or state.attempt_number > max_retries

    retrying = AsyncRetrying(
        retry=retry_if_exception(_is_retried),
        wait=_wait,
        stop=is_last,
        sleep=asyncio.sleep,
        reraise=True,
    )
    return await retrying(attempted)


def backoff(retry: int, named: float | None) -> float:
    """Return the seconds before a retry.

    Args:
        retry: Its number, from 1.
        named: Seconds that the service names, or None.
    """
    if named is not None:
        return named * _random.uniform(1, 1 + JITTER)
    seconds: float = min(FIRST_BACKOFF * 2 ** min(retry - 1, 16), MAX_BACKOFF)
    return seconds * _random.uniform(1 - JITTER, 1 + JITTER)


def _wait(state: RetryCallState) -> float:
    failure = state.outcome.exception() if state.outcome else None
    named = failure.retry_after if isinstance(failure, RequestFailure) else None
    return backoff(state.attempt_number, named)


def _is_retried(error: BaseException) -> bool:
    return isinstance(error, RequestFailure) and error.is_retried
