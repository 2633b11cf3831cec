"""Re-embedding: another model's vectors take the place of the old ones while searches go on."""

import asyncio
import os
import random
import subprocess
import sys
import threading
import time
import zlib

import numpy as np
import pytest

from mnemic import AsyncMemory, Memory, MemoryEntry, as_embedder, errors
from mnemic.repository import missing_vectors, reembedding
from mnemic.store.operations import AddShadowVectors, CountToEmbed, RowsToEmbed, SwitchModel
from tests.support.entries import contents
from tests.support.operations import replace_operation
from tests.support.places import KINDS, Places
from tests.support.processes import ENVIRONMENT
from tests.support.tiers import amount
from tests.support.waiting import until

pytestmark = pytest.mark.requirement("R339", "C115", "C094", "C165", "C089")

PATIENCE = 60
ROUNDS = int(os.environ.get("MNEMIC_TORTURE_ROUNDS", "0"))


class Embedder:
    """Gives each text a direction of its own; a vector of another model is never near it."""

    def __init__(self, model="words", turns=0, dimensions=64):
        self.model, self.dimensions, self.turns = model, dimensions, turns
        self.max_tokens = None  # it sees all of any text
        self.similarity_floor = None
        self.texts = []

    def embed(self, texts):
        self.texts.extend(texts)
        seeds = [zlib.crc32(text.encode()) for text in texts]
        drawn = [np.random.default_rng(seed).standard_normal(self.dimensions) for seed in seeds]
        return np.roll(np.array(drawn, np.float32), self.turns, axis=1)


class Turned(Embedder):
    """Another model, of vectors of the same length."""

    def __init__(self, model="turned", turns=17):
        super().__init__(model, turns)


class Held(Turned):
    """`Turned` that waits before its second batch of memories until it is let go."""

    def __init__(self, **options):
        super().__init__(**options)
        self.reached, self.let_go = threading.Event(), threading.Event()
        self.batches = 0

    def embed(self, texts):
        if len(texts) > 1:
            self.batches += 1
            if self.batches > 1:
                self.reached.set()
                assert self.let_go.wait(PATIENCE)
        return super().embed(texts)


class Refusing(Turned):
    """`Turned` that fails on texts with a word, and on all while it is down."""

    def __init__(self, word="poison"):
        super().__init__()
        self.word, self.is_down = word, False

    def embed(self, texts):
        if self.is_down or any(self.word in text for text in texts):
            raise ConnectionError("secret of the embedder")
        return super().embed(texts)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(reembedding, "EMBEDDED_AT_ONCE", 4)
    monkeypatch.setattr(reembedding, "FIRST_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(missing_vectors, "RETRY_SECONDS", 0.05)


@pytest.fixture(params=KINDS)
def places(request, tmp_path):
    with Places(request.param, tmp_path) as empty:
        yield empty


def filled(memory, number=10):
    memory.add_many([f"tea number{at}" for at in range(number)])
    return memory


def in_thread(work):
    """Run work in a thread; return what gives its result, or raises its error."""
    made = []

    def run_it():
        try:
            made.append((work(), None))
        except Exception as error:  # noqa: BLE001 - raised by the caller
            made.append((None, error))

    thread = threading.Thread(target=run_it)
    thread.start()

    def result():
        thread.join(PATIENCE)
        ((value, error),) = made
        if error is not None:
            raise error
        return value

    return result


def similarity(memory, text):
    """Return the best cosine of a query, which is 1 where both vectors are of one model."""
    (hit,) = memory.search(text, search_type="semantic", limit=1)
    return hit.content, pytest.approx(hit.components["similarity"], abs=1e-6)


def is_sound(memory):
    report = memory.verify()
    return report.ok and not report.problems


def test_all_memories_are_embedded_again_and_the_new_vectors_are_used(places):
    memory = filled(places.opened(embedder=Embedder()))
    numbers = []
    report = memory.reembed(Turned(), progress=lambda *done: numbers.append(done))
    assert report.is_complete
    assert (report.model, report.dimensions, report.previous) == ("turned", 64, "words")
    assert (report.embedded, report.kept, report.failed) == (10, 0, ())
    assert report.seconds > 0
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == ((0, 10), (10, 10))
    assert similarity(memory, "tea number7") == ("tea number7", 1.0)
    memory.add("coffee at noon")
    assert similarity(memory, "coffee at noon") == ("coffee at noon", 1.0)
    assert memory.embedder.model == "turned"
    assert is_sound(memory)


def test_searches_use_the_old_vectors_until_all_new_ones_are_there(places):
    memory = filled(places.opened(embedder=Embedder()))
    held = Held()
    report = in_thread(lambda: memory.reembed(held))
    assert held.reached.wait(PATIENCE)
    assert memory.embedder.model == "words"
    assert similarity(memory, "tea number7") == ("tea number7", 1.0)
    held.let_go.set()
    assert report().is_complete
    assert similarity(memory, "tea number7") == ("tea number7", 1.0)
    assert memory.embedder is not None
    assert memory.embedder.model == "turned"


def test_what_is_written_meanwhile_gets_both_vectors(places):
    memory = filled(places.opened(embedder=Embedder()))
    held = Held()
    report = in_thread(lambda: memory.reembed(held))
    assert held.reached.wait(PATIENCE)
    memory.add("coffee at noon")
    first = memory.search("tea number0", limit=1)[0].id
    memory.update(first, content="milk at night")
    deleted = memory.search("tea number1", limit=1)[0].id
    memory.delete(deleted)
    for text in ("coffee at noon", "milk at night"):
        assert similarity(memory, text) == (text, 1.0)
    held.let_go.set()
    assert report().is_complete
    for text in ("coffee at noon", "milk at night"):
        assert similarity(memory, text) == (text, 1.0)
    assert memory.count() == 10
    assert is_sound(memory)
    memory.restore(deleted)
    assert similarity(memory, "tea number1") == ("tea number1", 1.0)


def test_a_query_is_never_compared_with_the_vectors_of_another_model(places):
    memory = filled(places.opened(embedder=Embedder(), query_cache=4), 40)
    models = [Turned(f"turned by {turns}", turns) for turns in (5, 17, 31)]
    stopped, problems, searches = threading.Event(), [], [0]

    def search(seed):
        draw = random.Random(seed)  # noqa: S311 - no secret
        while not stopped.is_set():
            text = f"tea number{draw.randrange(40)}"
            found = memory.search(text, search_type="semantic", limit=1)
            searches[0] += 1
            if [hit.content for hit in found] != [text] or abs(found[0].score - 1) > 1e-6:
                problems.append((text, found))

    def write():
        for number in range(10**6):
            if stopped.is_set():
                return
            text = f"coffee number{number}"
            memory.add(text)
            if text not in contents(memory.search(text, limit=3)):
                problems.append((text, "is not found"))

    threads = [in_thread(lambda seed=seed: search(seed)) for seed in range(3)]
    threads.append(in_thread(write))
    try:
        for turn in range(4):
            assert memory.reembed(models[turn % 3]).is_complete
    finally:
        stopped.set()
    for thread in threads:
        thread()
    assert problems == []
    assert searches[0] > 0
    assert is_sound(memory)


@pytest.mark.parametrize("faster", [1, 2])
def test_a_change_ends_though_memories_are_always_added_meanwhile(places, faster):
    memory = filled(places.opened(embedder=Embedder()))
    added = []

    class Outrun(Turned):
        def embed(self, texts):
            if not is_done.is_set():
                for _ in range(faster * len(texts)):
                    added.append(f"coffee number{len(added)}")
                    memory.add(added[-1])
            return super().embed(texts)

    is_done = threading.Event()
    report = memory.reembed(Outrun())
    is_done.set()
    assert report.is_complete
    assert report.failed == ()
    for text in ("tea number7", added[0]):
        assert similarity(memory, text) == (text, 1.0)
    until(lambda: similarity(memory, added[-1]) == (added[-1], 1.0))  # embedded in the background
    assert memory.count() == 10 + len(added)
    assert is_sound(memory)


def test_what_was_embedded_is_not_read_again_for_each_page(places, monkeypatch):
    monkeypatch.setattr(reembedding, "_PAGE", 4)
    memory = filled(places.opened(embedder=Embedder()), 40)
    store, begun = memory.repository._store, []

    def noting(own, wanted, **options):
        begun.append(wanted.after)
        return own(wanted, **options)

    replace_operation(monkeypatch, store, RowsToEmbed, noting)
    assert memory.reembed(Turned()).embedded == 40
    assert begun == sorted(begun)
    assert len(set(begun)) == 10


def test_vectors_are_stored_while_the_embedder_has_the_next_texts(places, monkeypatch):
    memory = filled(places.opened(embedder=Embedder()))
    held, store = Held(), memory.repository._store

    def once_the_embedder_is_called_again(own, wanted):
        assert held.reached.wait(PATIENCE)
        held.let_go.set()
        return own(wanted)

    replace_operation(monkeypatch, store, AddShadowVectors, once_the_embedder_is_called_again)
    assert memory.reembed(held).embedded == 10
    assert similarity(memory, "tea number7") == ("tea number7", 1.0)


def test_an_error_of_the_store_ends_it_and_the_old_vectors_stay(places, monkeypatch):
    memory = filled(places.opened(embedder=Embedder()))
    store = memory.repository._store

    def full(*_):
        raise errors.StoreFullError("the disk is full")

    with monkeypatch.context() as patched:
        replace_operation(patched, store, AddShadowVectors, full)
        with pytest.raises(errors.StoreFullError):
            memory.reembed(Turned())
    assert similarity(memory, "tea number7") == ("tea number7", 1.0)
    assert memory.reembed(Turned()).embedded == 10


def test_few_long_texts_are_given_to_the_embedder_at_once(path, monkeypatch):
    calls = []

    class Noting(Turned):
        def embed(self, texts):
            calls.append([len(text) for text in texts])
            return super().embed(texts)

    monkeypatch.setattr(reembedding, "EMBEDDED_AT_ONCE", 8)
    monkeypatch.setattr(reembedding, "CHARACTERS_AT_ONCE", 100)
    with Memory(path, embedder=Embedder()) as memory:
        memory.add_many(["tea " + "x" * length for length in (8, 8, 30, 40, 50, 8, 200, 8)])
        assert memory.reembed(Noting()).embedded == 8
    assert [12, 12] in calls
    assert [204] in calls
    assert all(len(call) == 1 or sum(call) <= 100 for call in calls)


def test_a_failing_text_is_tried_again_though_memories_are_always_added_meanwhile(places):
    memory = filled(places.opened(embedder=Embedder()))
    bad = memory.add("the poison of it")

    class Outrun(Refusing):
        def embed(self, texts):
            if "poison" not in texts[0]:
                memory.add(f"coffee number{random.random()}")  # noqa: S311 - no secret
            return super().embed(texts)

    report = memory.reembed(Outrun())
    assert not report.is_complete
    assert report.failed == (bad.id,)
    assert similarity(memory, "the poison of it") == ("the poison of it", 1.0)


def test_changing_back_embeds_nothing_until_the_old_vectors_are_dropped(places):
    old = Embedder()
    memory = filled(places.opened(embedder=old))
    memory.reembed(Turned())
    report = memory.reembed(old)
    assert (report.embedded, report.kept, report.previous) == (0, 10, "turned")
    assert similarity(memory, "tea number7") == ("tea number7", 1.0)
    assert memory.drop_vectors("words") == 0  # the memory's own
    assert memory.drop_vectors("turned") == 10
    report = memory.reembed(Turned())
    assert (report.embedded, report.kept) == (10, 0)


@pytest.mark.parametrize("model", ["", "a\x1f", "\x1fother", 7, b"other"])
def test_the_name_of_a_model_whose_vectors_are_dropped_is_checked(path, model):
    with (
        Memory(path, embedder=Embedder()) as memory,
        pytest.raises(errors.MnemicError, match="model"),
    ):
        memory.drop_vectors(model)


def test_a_memory_that_is_only_read_drops_no_vectors(path):
    with filled(Memory(path, embedder=Embedder())) as memory:
        memory.reembed(Turned())
    with Memory(path, embedder=None, read_only=True) as memory, pytest.raises(errors.ReadOnlyError):
        memory.drop_vectors()
    with Memory(path, embedder=Turned()) as memory:
        assert asyncio.run(memory.aio.drop_vectors()) == 10


def test_a_failed_text_is_listed_and_the_old_vectors_stay(places, caplog):
    caplog.set_level("DEBUG")
    memory = filled(places.opened(embedder=Embedder()))
    bad = memory.add("the poison of it")
    embedder = Refusing()
    report = memory.reembed(embedder)
    assert not report.is_complete
    assert (report.embedded, report.failed) == (10, (bad.id,))
    assert caplog.records
    assert not any(word in caplog.text for word in ("poison", "tea", "secret"))
    assert memory.embedder.model == "words"
    assert similarity(memory, "the poison of it") == ("the poison of it", 1.0)
    memory.update(bad.id, content="a remedy")
    report = memory.reembed(embedder)
    assert report.is_complete
    assert (report.embedded, report.kept, report.failed) == (1, 10, ())


def test_a_failed_text_may_be_skipped_and_is_found_by_its_words_until_it_is_embedded(places):
    memory = filled(places.opened(embedder=Embedder()))
    bad = [memory.add(f"the poison of {name}").id for name in ("ann", "bob", "cid", "dan")]
    embedder = Refusing()
    report = memory.reembed(embedder, skip_failed=True)
    assert report.is_complete
    assert report.failed == tuple(bad)
    assert memory.search("bob", limit=1)[0].id == bad[1]
    assert similarity(memory, "tea number7") == ("tea number7", 1.0)
    embedder.word = "nothing"
    until(lambda: similarity(memory, "the poison of bob") == ("the poison of bob", 1.0))
    assert is_sound(memory)


def test_an_embedder_that_is_away_raises_and_what_was_embedded_is_kept(path, monkeypatch):
    memory = filled(Memory(path, embedder=Embedder()))
    embedder, embed = Refusing(), Refusing.embed

    def once(self, texts):
        found = embed(self, texts)
        self.is_down = self.is_down or len(texts) > 1
        return found

    monkeypatch.setattr(Refusing, "embed", once)
    with pytest.raises(errors.EmbeddingError) as raised:
        memory.reembed(embedder)
    assert "secret" not in str(raised.value)
    assert similarity(memory, "tea number7") == ("tea number7", 1.0)
    monkeypatch.setattr(Refusing, "embed", embed)
    embedder.is_down = False
    report = memory.reembed(embedder)
    assert report.is_complete
    assert 0 < report.kept < 10
    assert report.embedded == 10 - report.kept
    memory.close()


def test_opened_to_be_embedded_again_a_memory_searches_by_keywords_until_it_is(places):
    url = places.new()
    first = filled(places.opened(url=url, embedder=Embedder()))
    held = Held()
    memory = places.opened(url=url, embedder=held, reembed=True)
    assert held.reached.wait(PATIENCE)
    found = memory.search("tea number7", limit=1)
    assert found.degraded
    assert contents(found) == ["tea number7"]
    with pytest.raises(
        errors.EmbeddingError, match=r"by keywords until .* memory\.reembed\(\) waits"
    ):
        memory.search("tea number7", search_type="semantic")
    memory.add("coffee at noon")
    assert contents(memory.search("coffee", limit=1)) == ["coffee at noon"]
    assert similarity(first, "tea number7") == ("tea number7", 1.0)
    with pytest.raises(errors.InvalidArgumentError, match="by 'turned' already"):
        memory.reembed(Embedder())
    numbers = []
    report = in_thread(lambda: memory.reembed(progress=lambda *done: numbers.append(done)))
    until(lambda: numbers)
    held.let_go.set()
    assert report().is_complete
    assert report().embedded == 11
    for text in ("tea number7", "coffee at noon"):
        assert similarity(memory, text) == (text, 1.0)
    assert not memory.search("tea number7").degraded
    assert is_sound(memory)


def test_without_another_model_there_is_nothing_to_embed_again(path):
    with Memory(path, embedder=Embedder(), reembed=True) as memory:
        filled(memory)
        report = memory.reembed()
        assert (report.embedded, report.is_complete, report.previous) == (0, True, "words")
    with Memory(path, embedder=Embedder(), reembed=True) as memory:
        assert similarity(memory, "tea number7") == ("tea number7", 1.0)
        assert memory.embedder.texts == ["tea number7"]


def test_in_the_background_an_embedder_that_is_away_is_waited_for(path):
    filled(Memory(path, embedder=Embedder())).close()
    embedder = Refusing()
    embedder.is_down = True
    with Memory(path, embedder=embedder, reembed=True) as memory:
        memory.add("the poison of it")
        report = in_thread(memory.reembed)
        assert contents(memory.search("tea number7", limit=1)) == ["tea number7"]
        time.sleep(0.1)
        embedder.is_down = False
        assert report().is_complete
        assert len(report().failed) == 1
        assert similarity(memory, "tea number7") == ("tea number7", 1.0)
        assert contents(memory.search("poison", limit=1)) == ["the poison of it"]


def test_another_opening_with_the_old_embedder_is_told_what_to_do(places):
    url = places.new()
    other = filled(places.opened(url=url, embedder=Embedder()))
    bare = places.opened(url=url, embedder=None)
    memory = places.opened(url=url, embedder=Embedder())
    assert contents(bare.search("number7", limit=1)) == ["tea number7"]
    assert memory.reembed(Turned()).is_complete
    for call in (
        lambda: other.search("tea number7"),
        lambda: other.search("tea number7", search_type="semantic"),
        lambda: other.add("coffee"),
        lambda: places.opened(url=url, embedder=Embedder()),
    ):
        with pytest.raises(errors.EmbeddingModelMismatchError, match=r"'turned'.*'words'.*reembed"):
            call()
    assert contents(bare.search("number7", limit=1)) == ["tea number7"]
    assert other.reembed(Turned()).embedded == 0
    assert similarity(other, "tea number7") == ("tea number7", 1.0)


def test_two_openings_that_embed_again_at_once_both_end_with_the_new_vectors(places):
    url = places.new()
    filled(places.opened(url=url, embedder=Embedder()), 40)
    opened = [places.opened(url=url, embedder=Turned(), reembed=True) for _ in range(2)]
    for report in [in_thread(memory.reembed) for memory in opened]:
        assert report().is_complete
    for memory in opened:
        assert similarity(memory, "tea number7") == ("tea number7", 1.0)
        assert is_sound(memory)


def test_one_agents_memories_are_embedded_again_and_no_others(places):
    url = places.new()
    mine = filled(places.opened("mine", url=url, embedder=Embedder()))
    theirs = filled(places.opened("theirs", url=url, embedder=Embedder()))
    new = Turned()
    assert mine.reembed(new).embedded == 10
    assert len(new.texts) == 10
    assert similarity(theirs, "tea number7") == ("tea number7", 1.0)
    assert theirs.embedder.model == "words"
    assert theirs.drop_vectors() == 0
    assert mine.drop_vectors() == 10


def test_every_user_is_found_by_the_new_vectors_and_nobody_by_another(places):
    memory = places.opened(embedder=Embedder())
    for user in ("ann", "bob", None):
        memory.add_many([f"tea number{at} of {user}" for at in range(5)], user_id=user)
    memory.search("tea number3", user_id="ann")
    assert memory.retrieve("tea number3", user_id="ann")
    assert memory.reembed(Turned()).embedded == 15
    for user in ("ann", "bob", None):
        found = memory.search("tea number3", user_id=user, search_type="semantic")
        assert len(found) == 5
        assert {hit.user_id for hit in found} == {user}


def test_sensitive_archived_blank_and_long_memories_are_embedded_as_before(places):
    memory = places.opened(embedder=Embedder())
    memory.add("a secret of ann", sensitive=True)
    archived = memory.add("an old address")
    memory.update(archived.id, status="archived")
    memory.add({"content": "no meaning wanted", "embed": ()})
    deleted = memory.add("deleted permanently")
    memory.delete(deleted.id)
    new = Turned()
    new.max_tokens, new.characters_seen = 10, lambda text: min(len(text), 40)
    memory.add("sugar and milk " * 8)
    report = memory.reembed(new)
    assert report.is_complete
    assert similarity(memory, "a secret of ann") == ("a secret of ann", 1.0)
    assert "no meaning wanted" not in new.texts
    assert "deleted permanently" not in new.texts
    assert "an old address" in new.texts
    assert memory.drop_vectors("words") == 3  # neither of the sensitive nor of the blank one
    assert is_sound(memory)


def test_vectors_of_a_program_are_replaced_by_those_of_the_content(path):
    own = np.ones(64, np.float32)
    with Memory(path, embedder=Embedder()) as memory:
        memory.add(MemoryEntry("tea at noon", embedding=own))
        memory.reembed(Turned())
        assert similarity(memory, "tea at noon") == ("tea at noon", 1.0)


def test_a_memory_without_an_embedder_gets_one(path):
    with Memory(path, embedder=None) as memory:
        filled(memory)
        with pytest.raises(errors.EmbedderRequiredError, match="give reembed an embedder"):
            memory.reembed()
        report = memory.reembed(Turned())
        assert (report.previous, report.embedded) == (None, 10)
        assert similarity(memory, "tea number7") == ("tea number7", 1.0)


def test_an_empty_memory_takes_another_embedder_at_once(path):
    with Memory(path, embedder=Embedder()) as memory:
        report = memory.reembed(Turned())
        assert (report.embedded, report.previous, report.is_complete) == (0, None, True)
        memory.add("tea at noon")
        assert similarity(memory, "tea at noon") == ("tea at noon", 1.0)


def test_a_function_names_its_model_and_its_dimension_is_learned(path):
    with Memory(path, embedder=Embedder()) as memory:
        filled(memory)
        report = memory.reembed(Embedder(dimensions=32).embed, embedding_model="fewer")
        assert (report.model, report.dimensions, report.is_complete) == ("fewer", 32, True)
        assert similarity(memory, "tea number7")[0] == "tea number7"
    assert Memory.model_of(path).dimensions == 32


def test_another_length_under_the_same_name_is_refused(path):
    with Memory(path, embedder=Embedder()) as memory:
        filled(memory)
        with pytest.raises(errors.EmbeddingModelMismatchError, match="another name: as_embedder"):
            memory.reembed(Embedder(dimensions=32))
        assert memory.reembed(as_embedder(Embedder(dimensions=32), model="fewer")).is_complete


def test_a_memory_that_is_only_read_is_not_embedded_again(path):
    filled(Memory(path, embedder=Embedder())).close()
    with (
        Memory(path, embedder=Embedder(), read_only=True) as memory,
        pytest.raises(errors.ReadOnlyError),
    ):
        memory.reembed(Turned())
    for options in ({"read_only": True, "embedder": Turned()}, {"embedder": None}):
        with pytest.raises(errors.InvalidArgumentError, match="reembed=True"):
            Memory(path, reembed=True, **options)


def test_closing_ends_it_and_the_next_opening_goes_on(path):
    memory = filled(Memory(path, embedder=Embedder()))
    held = Held()
    report = in_thread(lambda: memory.reembed(held))
    assert held.reached.wait(PATIENCE)
    closing = in_thread(memory.close)
    held.let_go.set()
    closing()
    with pytest.raises(errors.StoreClosedError):
        report()
    with Memory(path, embedder=Turned(), reembed=True) as again:
        report = again.reembed()
        assert report.kept >= 4
        assert report.embedded == 10 - report.kept


def test_awaited_it_does_not_block_the_event_loop_and_ends_when_it_is_cancelled(path):
    async def main():
        async with AsyncMemory(path, embedder=Embedder()) as memory:
            await memory.add_many([f"tea number{at}" for at in range(10)])
            held = Held()
            task = asyncio.create_task(memory.reembed(held))
            assert await asyncio.to_thread(held.reached.wait, PATIENCE)
            assert (await memory.search("tea number7", limit=1))[0].content == "tea number7"
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            held.let_go.set()
            held.batches = -(10**6)
            report = await memory.reembed(held)
            assert report.is_complete
            assert report.kept >= 4

    asyncio.run(main())


KILLED = """
import sys

from mnemic import Memory
from mnemic.repository import reembedding
from tests.repository.test_reembedding import Turned

reembedding.EMBEDDED_AT_ONCE = 2
turns = [("turned", 17), ("turned again", 5)]
with Memory(sys.argv[1], embedder=None) as memory:
    known = Memory.model_of(sys.argv[1]).name
    print("open", flush=True)
    for _ in range(1000):
        for name, turn in turns:
            if name != known:
                memory.reembed(Turned(name, turn))
                memory.drop_vectors(known)
                known = name
"""


@pytest.mark.parametrize("seed", range(amount(8) + ROUNDS))
def test_a_kill_at_any_moment_leaves_the_vectors_of_one_model_and_the_rest_goes_on(path, seed):
    filled(Memory(path, embedder=Turned()), 60).close()
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as child:
        assert child.stdout.readline() == b"open\n"
        time.sleep(random.Random(seed).random() * 0.6)  # noqa: S311 - a fixed choice
        child.kill()
    known = Memory.model_of(path)
    turns = {"turned": 17, "turned again": 5}
    with Memory(path, embedder=Turned(known.name, turns[known.name])) as memory:
        assert is_sound(memory)
        assert similarity(memory, "tea number7") == ("tea number7", 1.0)
        other = next(name for name in turns if name != known.name)
        there = memory.repository._store.read(CountToEmbed("default", (other, known.dimensions)))
        report = memory.reembed(Turned(other, turns[other]))
        assert report.is_complete
        assert (report.embedded, report.kept) == (there.missing, 60 - there.missing)
        assert similarity(memory, "tea number7") == ("tea number7", 1.0)
        assert is_sound(memory)


def test_an_error_of_the_switch_leaves_the_old_vectors_in_use(path, monkeypatch):
    memory = filled(Memory(path, embedder=Embedder()))
    store = memory.repository._store

    def failing(*_, **__):
        raise errors.MnemicError("no switch today")

    with monkeypatch.context() as patched:
        replace_operation(patched, store, SwitchModel, failing)
        with pytest.raises(errors.MnemicError, match="today"):
            memory.reembed(Turned())
    memory.add("coffee at noon")
    for text in ("tea number7", "coffee at noon"):
        assert similarity(memory, text) == (text, 1.0)
    assert memory.reembed(Turned()).kept == 10
    memory.close()
