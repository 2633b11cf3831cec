"""Searches that are awaited together are embedded by one call."""

import asyncio
import threading
import time

import pytest

from mnemic import AsyncMemory, Memory
from mnemic.errors import EmbeddingError
from tests.support.embedders import WordEmbedder

WORDS = "harbour boat sailing winter ice cats dog red sofa ferry noon quay tea".split()  # noqa: SIM905


class Counting(WordEmbedder):
    """Counts its calls, each of which takes five milliseconds, and fails on a text."""

    def __init__(self, *, join_calls=True, fails_on=None):
        super().__init__(dimensions=64)
        self.join_calls, self.fails_on = join_calls, fails_on
        self.calls, self.threads = [], set()

    def embed(self, texts):
        self.calls.append(list(texts))
        self.threads.add(threading.current_thread())
        time.sleep(0.005)
        if self.fails_on in texts:
            raise RuntimeError("not this one")
        return super().embed(texts)


def queries(count):
    return [f"{WORDS[at % len(WORDS)]} {WORDS[at // len(WORDS)]} {at}" for at in range(count)]


def with_memory(embedder, scenario, **options):
    """Run a scenario with a memory of two users, from which the calls begin to count."""

    async def main():
        async with AsyncMemory(":memory:", embedder=embedder, **options) as memory:
            for user in ("alice", "bob"):
                texts = [f"{user} {word} {other}" for word in WORDS for other in WORDS[:3]]
                await memory.add_many(texts, user_id=user)
            embedder.calls.clear()
            return await asyncio.wait_for(scenario(memory), 60)

    return asyncio.run(main())


def together(memory, texts, **options):
    """Search texts at once, for two users in turns."""
    users = ("alice", "bob")
    return asyncio.gather(
        *(memory.search(text, user_id=users[at % 2], **options) for at, text in enumerate(texts)),
        return_exceptions=True,
    )


def shown(found):
    return [[(hit.id, hit.score) for hit in hits] for hits in found]


def test_a_hundred_awaited_searches_share_calls_and_threads():
    embedder, texts = Counting(), queries(100)

    async def scenario(memory):
        begun = threading.active_count()
        found = await together(memory, texts)
        assert len(embedder.calls) <= 3
        assert sorted(sum(embedder.calls, [])) == sorted(texts)  # noqa: RUF017 - few
        assert threading.active_count() - begun <= 8
        embedder.calls.clear()
        plain = [
            memory.sync.search(text, user_id=("alice", "bob")[at % 2])
            for at, text in enumerate(texts)
        ]
        assert shown(found) == shown(plain)
        assert embedder.calls == []  # their vectors are kept

    with_memory(embedder, scenario)


def test_a_text_that_cannot_be_embedded_fails_its_own_search_alone():
    embedder, texts = Counting(fails_on="winter tea"), queries(20)

    async def scenario(memory):
        options = {"search_type": "semantic"}
        *found, failed = await together(memory, [*texts, "winter tea"], **options)
        assert isinstance(failed, EmbeddingError)
        embedder.fails_on = None
        assert shown(found) == shown(await together(memory, texts, **options))

    with_memory(embedder, scenario)


def test_a_hybrid_search_beside_a_failing_one_is_not_degraded():
    embedder = Counting(fails_on="winter tea")

    async def scenario(memory):
        found = await together(memory, ["red sofa", "winter tea", "ferry"])
        assert [hits.degraded for hits in found] == [False, True, False]

    with_memory(embedder, scenario)


def test_a_search_with_a_time_limit_waits_for_no_other():
    embedder = Counting()

    async def scenario(memory):
        limited = memory.search("red sofa", user_id="alice", timeout=30.0)
        await asyncio.gather(limited, together(memory, ["tea", "ice", "dog"]))
        assert sorted(len(call) for call in embedder.calls) == [1, 3]

    with_memory(embedder, scenario)


def test_an_embedder_that_joins_no_calls_gets_a_text_a_call():
    embedder, texts = Counting(join_calls=False), queries(10)

    async def scenario(memory):
        await together(memory, texts)
        assert sorted(embedder.calls) == sorted([text] for text in texts)

    with_memory(embedder, scenario)


def test_a_cancelled_search_takes_no_other_with_it():
    embedder, texts = Counting(), queries(20)

    async def scenario(memory):
        tasks = [asyncio.ensure_future(memory.search(text, user_id="alice")) for text in texts]
        await asyncio.sleep(0)
        tasks[0].cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert [len(hits) for hits in found[1:]] == [10] * 19

    with_memory(embedder, scenario)


def test_names_of_speakers_are_left_out_of_texts_embedded_together():
    embedder = Counting()

    async def scenario(memory):
        for user, speaker in (("alice", "Ana"), ("bob", "Boris")):
            await memory.add_many(
                [{"content": f"{word} at noon", "speaker": speaker} for word in WORDS],
                user_id=user,
                session_id="s",
            )
        embedder.calls.clear()
        texts = ["does Ana like tea?", "does Boris like tea?", "does Ana like dogs?"]
        found = await together(memory, texts)
        ((tea, dogs),) = embedder.calls
        users = ("alice", "bob", "alice")
        alone = [
            memory.sync.search(text, user_id=user) for text, user in zip(texts, users, strict=True)
        ]
        assert shown(found) == shown(alone)
        assert {tea, dogs} == {"does I like tea?", "does I like dogs?"}

    with_memory(embedder, scenario)


@pytest.mark.parametrize("verb", ["retrieve", "recall", "context"])
def test_other_verbs_by_meaning_share_too(verb):
    embedder = Counting()

    async def scenario(memory):
        call = getattr(memory, verb)
        found = await asyncio.gather(*(call(text, user_id="alice") for text in queries(20)))
        assert all(found)
        assert len(embedder.calls) == 1

    with_memory(embedder, scenario)


def test_an_embedder_that_uses_another_memory_embeds_a_turn_by_one_call():
    class Remembering(Counting):
        def embed(self, texts):
            if self.known.search("harbour", limit=1):
                return super().embed(texts)
            raise AssertionError

    with Memory(":memory:", embedder=None) as known:
        known.add("harbour")
        embedder = Remembering()
        embedder.known = known
        with_memory(embedder, lambda memory: together(memory, queries(5)))
    assert [sorted(call) for call in embedder.calls] == [sorted(queries(5))]
