"""Sends requests of JSON to a service, within a time limit, with retries."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

import httpx2
import msgspec

from mnemic.http.clients import Clients, make_client, ssl_context
from mnemic.http.failures import ErrorTypes, InvalidResponse, RequestFailure
from mnemic.http.rate_limits import Pause, retry_after
from mnemic.http.redaction import hiding_responses, keep_out_of_logs, shown_body, without_secrets
from mnemic.http.retries import RETRIED_STATUSES, retried
from mnemic.reporting.reasons import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mnemic.http.options import Limits
    from mnemic.http.service import Request, Service

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
