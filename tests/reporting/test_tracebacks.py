import asyncio
import inspect
import traceback
from enum import Enum
from functools import partial

import pytest

import mnemic
import mnemic_files
from mnemic import AsyncMemory, Memory, MemoryFilter, StringVectorMap, VectorMap, errors
from mnemic.compat import AsyncRetrievalService
from mnemic.hyde import HydeConfig
from mnemic.policy import RetrievalConfig, RetrievalPolicy
from mnemic.reporting.tracebacks import CALLERS
from tests.support.embedders import WordEmbedder
from tests.support.frames import frames_of_mnemic
from tests.support.public_names import SHELVES


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=WordEmbedder()) as opened:
        yield opened


def raised_by(call, kind=errors.MnemicError):
    with pytest.raises(kind) as caught:
        call()
    return caught.value


CALLS = {
    "add in a view": lambda memory: memory.scoped(user_id="a").add("x", importance=7),
    "add_many of a dict": lambda memory: memory.add_many([{"content": "x", "importance": 7}]),
    "search by filters": lambda memory: memory.search("x", filters={"OR": [{"tags": {"gte": 1}}]}),
    "search by a vector": lambda memory: memory.search(vector=[1.0, 2.0]),
    "search with a name": lambda memory: memory.search("x", lmit=1),
    "link": lambda memory: memory.link("x", "y", "z"),
    "another scope": lambda memory: memory.scoped(user_id="a").scoped(user_id="b"),
    "opening in a folder that is not": lambda _: Memory("nowhere/at/all.db"),
    "opening with a name": lambda _: Memory(":memory:", embeder=None),
    "adding to a map": lambda _: VectorMap(2).upsert([1], [[1.0]]),
    "adding to a map of strings": lambda _: StringVectorMap(2).upsert(["a"], [[1.0]]),
    "searching a map of strings": lambda _: StringVectorMap(2).search([1.0], k=1),
    "a service": lambda memory: AsyncRetrievalService(memory, cache_size=-1),
    "retrieving": lambda memory: AsyncRetrievalService(memory).sync.retrieve(3),
    "a policy": lambda memory: RetrievalPolicy(memory, 3),
    "running a policy": lambda memory: RetrievalPolicy(memory).run(3),
    "settings of a policy": lambda _: RetrievalConfig.from_dict({"min_scor": 1}),
    "settings of hyde": lambda _: HydeConfig.from_dict({"enable": 1}),
}
"""Beside those that tests/promises/test_arguments.py makes of every verb, class and record."""


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_shows_the_callers_line_and_the_verb(memory, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = raised_by(lambda: CALLS[name](memory))
    shown = frames_of_mnemic(error)
    assert len(shown) <= 2, [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in shown]


AWAITED = {
    "search by filters": lambda memory: memory.search("x", filters={"a": 1}),
    "search with a name": lambda memory: memory.search("x", lmit=1),
    "search by a vector": lambda memory: memory.search(vector=[1.0]),
    "opening": lambda _: AsyncMemory.model_of(3),
}


@pytest.mark.parametrize("name", AWAITED)
def test_a_wrong_argument_of_an_awaited_call_shows_as_little(memory, name):
    async def scenario():
        await AWAITED[name](memory.aio)

    assert len(frames_of_mnemic(raised_by(lambda: asyncio.run(scenario())))) <= 2


def test_the_last_line_shown_is_of_the_verb(memory):
    assert [each.name for each in frames_of_mnemic(raised_by(lambda: memory.get("x")))] == ["get"]


def test_the_error_that_one_came_of_is_kept_without_its_frames(memory):
    error = raised_by(lambda: memory.add_many([{"content": "x", "importance": 7}]))
    assert isinstance(error, errors.InvalidEntryError)
    assert isinstance(error.__cause__, errors.InvalidEntryError)
    assert error.__cause__.__traceback__ is None
    assert "direct cause" in "".join(traceback.format_exception(error))


def test_an_error_out_of_a_function_of_the_callers_keeps_its_frames():
    def embed(texts):
        return VectorMap(0).search(texts)

    embed.model = "wrong inside"
    options = {"embedder": None, "id_factory": lambda _: MemoryFilter(min_importance=7)}
    with Memory(":memory:", **options) as memory:
        error = raised_by(lambda: memory.add("x"), errors.InvalidArgumentError)
    frames = traceback.extract_tb(error.__traceback__)
    assert frames[-1].name == "__call__"
    own = [frame.name for frame in frames if frame.filename == __file__]
    assert own.count("<lambda>") == 2


def test_what_is_no_error_of_the_callers_keeps_its_frames(tmp_path, monkeypatch):
    with Memory(tmp_path / "a.db", embedder=None) as memory:

        def fail(*_, **__):
            raise errors.StoreError("the store broke")

        monkeypatch.setattr(memory.repository.finder, "find", fail)
        error = raised_by(lambda: memory.search("x"), errors.StoreError)
    assert len(frames_of_mnemic(error)) > 2
    assert traceback.extract_tb(error.__traceback__)[-1].name == "fail"


@pytest.mark.parametrize(("value", "is_whole"), [("1", True), ("0", False), ("", False)])
def test_a_variable_keeps_whole_tracebacks(memory, monkeypatch, value, is_whole):
    monkeypatch.setenv("MNEMIC_DEBUG", value)
    error = raised_by(lambda: memory.search("x", filters={"a": 1}), errors.FilterError)
    assert (len(frames_of_mnemic(error)) > 3) is is_whole


def test_an_embedder_that_fails_shows_as_little():
    def embed(_):
        raise ConnectionError("no route to host")

    with Memory(":memory:", embedder=embed, embedding_model="broken") as memory:
        error = raised_by(lambda: memory.add("x"), errors.EmbeddingError)
    assert len(frames_of_mnemic(error)) <= 2


def public_things():
    """Yield every public class and function that makes or computes something."""
    modules = (mnemic, *SHELVES, mnemic_files)
    things = {name: getattr(module, name) for module in modules for name in module.__all__}
    for name, thing in things.items():
        is_class = inspect.isclass(thing) and not issubclass(thing, BaseException | Enum | dict)
        if inspect.isfunction(thing) or (is_class and not getattr(thing, "_is_protocol", False)):
            yield name, thing


def calls_of(thing):
    """Yield calls with a wrong value for the arguments that must be given, and one other."""
    shape = inspect.signature(thing).parameters.values()
    needed = [each for each in shape if each.default is each.empty]
    for wrong in (object(), 3, "x", None, -1, [None]):
        placed = [wrong for each in needed if each.kind < each.VAR_POSITIONAL]
        named = {each.name: wrong for each in needed if each.kind is each.KEYWORD_ONLY}
        yield partial(thing, *placed, **named)
        for each in shape:
            if each not in needed and each.kind is not each.POSITIONAL_ONLY:
                yield partial(thing, *placed, **named, **{each.name: wrong})


def depth_of(call):
    """Return the frames that a call's error shows; 0 for an answer, or an error of Python's."""
    try:
        made = call()
        if inspect.iscoroutine(made):
            made.close()
    except CALLERS as error:
        return len(frames_of_mnemic(error))
    except Exception:  # noqa: BLE001 - records of results, which mnemic makes, check nothing
        return 0
    return 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "thing"), list(public_things()))
def test_what_a_public_name_refuses_shows_two_frames(name, thing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    deep = [call for call in calls_of(thing) if depth_of(call) > 2]
    assert deep == [], name


@pytest.mark.parametrize("kind", [RetrievalConfig, HydeConfig])
@pytest.mark.parametrize("text", [3, "{", '{"x": 1}'])
def test_options_that_cannot_be_read_show_two_frames(kind, text):
    for read in (kind.from_json, kind.from_toml, kind.from_dict):
        assert len(frames_of_mnemic(raised_by(lambda read=read: read(text)))) <= 2
