"""What is sent again, when, and what is not: against a server that fails on demand."""

import asyncio
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mnemic import HttpEmbedder
from mnemic.errors import EmbeddingServiceError, EmbeddingTimeoutError, LanguageModelTimeoutError
from mnemic.http import transport
from mnemic.http.transport import Pause, retry_after
from mnemic.llm import HttpLanguageModel

LOST = [{"drop": "before"}, {"drop": "midway"}]
PASSING = [*({"status": status} for status in sorted(transport.RETRIED_STATUSES)), *LOST]


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch):
    monkeypatch.setattr(transport, "FIRST_BACKOFF", 0.01)


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


@pytest.mark.requirement("T086")
@pytest.mark.parametrize("fault", PASSING)
def test_a_passing_failure_is_retried_once_and_the_call_succeeds(embedder, server, fault):
    server.faults(**fault)
    assert embedder.embed_sync(["a"]).shape == (1, 64)
    assert len(server.requests()) == 2


@pytest.mark.requirement("T086")
@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 408, 409, 413, 422, 501])
def test_another_status_is_not_retried(embedder, server, status):
    server.faults(status=status, headers={"Location": f"{server.url}/elsewhere"}, times=0)
    assert failure(embedder).status == status
    assert [each["path"] for each in server.requests()] == ["/v1/embeddings"]


@pytest.mark.parametrize("fault", [{"status": 503}, *LOST])
def test_a_lasting_failure_is_retried_as_often_as_allowed(server, fault):
    for max_retries in (0, 1, 3):
        server.reset()
        server.faults(**fault, times=0)
        with HttpEmbedder("m", base_url=server.url, max_retries=max_retries) as embedder:
            assert failure(embedder).status == fault.get("status")
        assert len(server.requests()) == max_retries + 1


def test_a_service_that_is_down_is_tried_again_and_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens, and nobody else gets the port
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with HttpEmbedder("m", base_url=url) as embedder:
            error = failure(embedder)
    assert error.status is None
    assert "cannot be reached: ConnectError" in str(error)
    assert url in str(error)


@pytest.mark.requirement("T086")
@pytest.mark.parametrize("fault", [{"hang": True}, {"delay": 60}, {"trickle": 0.05}])
def test_a_slow_service_is_a_timeout_with_its_limit_and_is_not_retried(server, fault):
    server.faults(**fault, times=0)
    with HttpEmbedder("m", base_url=server.url, timeout=0.4) as embedder:
        error = failure(embedder, EmbeddingTimeoutError)
    assert isinstance(error, TimeoutError)
    assert "within 0.4 s" in str(error)
    server.until(lambda report: report["abandoned"] == 1)
    assert len(server.requests()) == 1


@pytest.mark.requirement("C128")
def test_the_callers_own_limit_ends_the_request_at_once(server):
    server.faults(hang=True, times=0)

    async def limited(llm):
        async with asyncio.timeout(None) as limit:
            answer = asyncio.create_task(llm.complete("a"))
            await asyncio.to_thread(server.until, lambda report: report["running"] == 1)
            limit.reschedule(asyncio.get_running_loop().time())  # once the request is there
            await answer

    async def scenario():
        async with HttpLanguageModel("m", base_url=server.url) as llm:
            with pytest.raises(TimeoutError) as raised:
                await limited(llm)
            assert not isinstance(raised.value, LanguageModelTimeoutError)
            await asyncio.to_thread(server.until, lambda report: report["abandoned"] == 1)
            task = asyncio.create_task(llm.complete("a"))
            await asyncio.to_thread(server.until, lambda report: report["running"] == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.until, lambda report: report["abandoned"] == 2)
            server.reset()
            assert await llm.complete("still there?")

    asyncio.run(scenario())


def test_cancelled_requests_leave_no_connection_taken(server):
    server.faults(delay=0.05, times=0)

    async def scenario():
        async with HttpEmbedder("m", base_url=server.url) as embedder:
            for step in range(60):
                tasks = [asyncio.create_task(embedder.embed(["a"])) for _ in range(8)]
                for _ in range(step):  # at another await each time
                    await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            server.reset()
            results = await asyncio.gather(*(embedder.embed(["a"]) for _ in range(40)))
            assert len(results) == 40

    asyncio.run(scenario())


@pytest.mark.requirement("T086")
def test_the_jitter_stays_within_a_quarter_and_varies(monkeypatch):
    monkeypatch.setattr(transport, "FIRST_BACKOFF", 0.5)
    for retry, middle in ((1, 0.5), (2, 1.0), (3, 2.0), (5, 8.0), (500, 8.0)):
        waits = [transport.backoff(retry, None) for _ in range(400)]
        assert all(0.75 * middle <= wait <= 1.25 * middle for wait in waits)
        assert min(waits) < 0.85 * middle
        assert max(waits) > 1.15 * middle
    named = [transport.backoff(1, 4.0) for _ in range(400)]
    assert all(4 <= wait <= 5 for wait in named)
    assert len(set(named)) > 300


def test_no_wait_goes_beyond_the_limit(server, monkeypatch):
    monkeypatch.setattr(transport, "FIRST_BACKOFF", 100)
    server.faults(status=503, times=0)
    with HttpEmbedder("m", base_url=server.url, timeout=20) as embedder:
        begun = time.monotonic()
        monkeypatch.setattr(transport, "MAX_BACKOFF", 100)
        assert failure(embedder).status == 503
        assert time.monotonic() - begun < 20  # it did not even wait for the limit
    assert len(server.requests()) == 1


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
