"""Which failures are retried, when, and for how long."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from mnemic.http.failures import RequestFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Result = TypeVar("Result")

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
