"""The times that a service names in its headers, and the pause they mean."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mnemic import HttpEmbedder
from mnemic.errors import EmbeddingServiceError
from mnemic.http import retries, transport
from mnemic.http.transport import Pause, retry_after


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.01)


@pytest.fixture
def embedder(server):
    with HttpEmbedder("m", base_url=server.url) as made:
        made.embed_sync(["warm"])  # a connection, which later requests use again
        server.reset()
        yield made


def failure(embedder, kind=EmbeddingServiceError):
    with pytest.raises(kind) as raised:
        embedder.embed_sync(["a"])
    return raised.value


def gap(server):
    first, second = (request["at"] for request in server.requests())
    return second - first


@pytest.mark.requirement("T086")
@pytest.mark.parametrize(
    "fault",
    [
        {"rate_limit": 0.3},
        {"status": 503, "headers": {"Retry-After": "0.3"}},
        {"status": 429, "headers": {"retry-after-ms": "300"}},
        {
            "status": 429,
            "headers": {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "300ms",
            },
        },
    ],
)
def test_the_time_that_a_service_names_is_waited_for(embedder, server, fault):
    server.faults(**fault)
    embedder.embed_sync(["a"])
    assert gap(server) >= 0.29


@pytest.mark.requirement("T086")
def test_a_time_beyond_the_limit_is_not_waited_for_and_no_other_call_is_sent(server):
    server.faults(rate_limit=3000)
    with HttpEmbedder("m", base_url=server.url, timeout=20) as embedder:
        error = failure(embedder)
        assert (error.status, error.retry_after) == (429, 3000)
        paused = failure(embedder)
        assert paused.status == 429
        assert 0 < paused.retry_after <= transport.MAX_PAUSE
        assert "nothing was sent" in str(paused)
    assert len(server.requests()) == 1


def test_calls_wait_while_the_service_wants_none(embedder, server):
    server.faults(rate_limit=0.4)

    async def scenario():
        first = asyncio.create_task(embedder.embed(["first"]))
        await asyncio.to_thread(server.until, lambda report: report["embeddings"] == 1)
        await asyncio.sleep(0.05)
        await asyncio.gather(first, embedder.embed(["second"]))

    asyncio.run(scenario())
    refused, *later = server.requests()
    assert len(later) == 2
    assert all(request["at"] - refused["at"] >= 0.39 for request in later)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-7"}, 0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        (
            {
                "date": "Wed, 21 Oct 2015 07:28:00 GMT",
                "retry-after": "Wed, 21 Oct 2015 07:28:09 GMT",
            },
            9,
        ),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30.5s"}, 90.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "12"}, 12),
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "12"}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h"}, 3600),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "later"}, None),
    ],
)
def test_the_times_of_headers(headers, seconds):
    assert retry_after(headers) == seconds


def test_a_date_without_the_services_own_time_is_by_the_clock_here():
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    assert 90 < retry_after({"retry-after": date}) <= 100


def test_a_pause_is_the_longest_of_those_named_and_bounded():
    pause = Pause()
    assert pause.seconds_left == 0
    pause.extend(10)
    pause.extend(1)
    assert 9 < pause.seconds_left <= 10
    pause.extend(10**9)
    assert pause.seconds_left <= transport.MAX_PAUSE


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "3600"},
        {"retry-after-ms": "3600000"},
        {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h"},
    ],
)
def test_an_hour_is_not_waited_for_and_the_error_says_it(server, headers):
    server.faults(status=429, headers=headers, times=0)
    with HttpEmbedder("m", base_url=server.url, timeout=5) as embedder:
        begun = time.monotonic()
        with pytest.raises(
            EmbeddingServiceError, match="takes the next request in 3600 s"
        ) as raised:
            embedder.embed_sync(["a"])
        assert time.monotonic() - begun < 4
        assert raised.value.retry_after == 3600
        with pytest.raises(EmbeddingServiceError, match="for another"):
            embedder.embed_sync(["a"])
        assert time.monotonic() - begun < 4
        assert len(server.requests()) == 1
