"""`X` is plain and `AsyncX` awaited: the same methods, arguments and texts, the same object."""

import asyncio
import gc
import inspect
import threading
import weakref
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import CodeType

import pytest

from mnemic import AsyncMemory, AsyncScopedMemory, Memory, ScopedMemory
from mnemic.compat import (
    AsyncLongTermMemory,
    AsyncMemoryRetriever,
    AsyncRetrievalService,
    LongTermMemory,
    MemoryRetriever,
    RetrievalService,
)
from mnemic.errors import MnemicError, WrongFormError
from mnemic.hyde import AsyncHydeEngine, AsyncHydeTurn, HydeConfig, HydeEngine, HydeTurn
from mnemic.policy import AsyncRetrievalPolicy, RetrievalPolicy
from mnemic.verbs.maintenance import AsyncVectorIndex, VectorIndex
from tests.support.embedders import WordEmbedder
from tests.support.threads import run_together

PAIRS = [
    (Memory, AsyncMemory),
    (ScopedMemory, AsyncScopedMemory),
    (LongTermMemory, AsyncLongTermMemory),
    (RetrievalService, AsyncRetrievalService),
    (MemoryRetriever, AsyncMemoryRetriever),
    (HydeEngine, AsyncHydeEngine),
    (HydeTurn, AsyncHydeTurn),
    (RetrievalPolicy, AsyncRetrievalPolicy),
    (VectorIndex, AsyncVectorIndex),
]
NAMES = [plain.__name__ for plain, _ in PAIRS]
OF_PAIRS = pytest.mark.parametrize(("plain", "awaited"), PAIRS, ids=NAMES)
LEADING = {"sync", "aio"}


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_") and hasattr(kind, name)}


def arguments(function):
    """Return names, kinds, defaults and types of a function's arguments."""
    return list(inspect.signature(function).parameters.values())


def text(member):
    return member.__doc__.replace("`Async", "`")


@OF_PAIRS
def test_both_forms_have_the_same_members(plain, awaited):
    assert awaited.__name__ == f"Async{plain.__name__}"
    closing = {"aclose"} if hasattr(plain, "close") else set()
    leads = hasattr(plain, "aio")
    assert leads is (plain not in {HydeTurn, VectorIndex})
    assert public(plain) - public(awaited) == ({"aio"} if leads else set())
    assert public(awaited) - public(plain) == ({"sync"} if leads else set()) | closing


def private_names(code):
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    named = {name for name in code.co_names if name.startswith("_")}
    return named.union(*map(private_names, inner))


@OF_PAIRS
def test_what_an_awaited_call_uses_of_its_object_is_there_for_the_plain_one(plain, awaited):
    names = {
        name
        for name in public(plain) & public(awaited)
        if inspect.isfunction(getattr(awaited, name))
    }
    used = {
        each
        for name in names
        for each in private_names(inspect.unwrap(getattr(awaited, name)).__code__)
    }
    assert not {name for name in used if hasattr(awaited, name) and not hasattr(plain, name)}


@OF_PAIRS
def test_both_forms_have_the_same_arguments_and_texts(plain, awaited):
    assert arguments(plain.__init__) == arguments(awaited.__init__)
    compared = (public(plain) & public(awaited)) - LEADING
    for name in compared:
        one, other = getattr(plain, name), getattr(awaited, name)
        assert type(one) is type(other), name
        assert text(one) == text(other), name
        if callable(one):
            assert arguments(one) == arguments(other), name
            assert not inspect.iscoroutinefunction(one), name
        if inspect.iscoroutinefunction(other):
            returned = inspect.signature(one).return_annotation
            assert returned == inspect.signature(other).return_annotation, name
            assert one.__qualname__ == other.__qualname__.removeprefix("Async")
    assert any(inspect.iscoroutinefunction(getattr(awaited, name)) for name in compared)


class Echo:
    model = "echo"

    def complete(self, prompt, *, system=None):
        del prompt, system
        return "tea"


MADE = {
    "retrieval": (RetrievalService, AsyncRetrievalService, ()),
    "retriever": (MemoryRetriever, AsyncMemoryRetriever, ()),
    "engine": (HydeEngine, AsyncHydeEngine, (WordEmbedder(), Echo())),
    "policy": (RetrievalPolicy, AsyncRetrievalPolicy, ()),
}


@pytest.fixture(params=MADE)
def made(request):
    return MADE[request.param]


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=WordEmbedder()) as opened:
        yield opened


def test_each_form_is_constructed_directly_and_leads_to_the_other(memory, made):
    plain_kind, awaited_kind, given = made
    plain = plain_kind(memory, *given)
    other = plain.aio
    assert type(other) is awaited_kind
    assert (plain.aio is other, other.sync is plain) == (True, True)
    awaited = awaited_kind(memory, *given)
    assert type(awaited.sync) is plain_kind
    assert (awaited.sync is awaited.sync, awaited.sync.aio is awaited) == (True, True)


def test_a_form_that_made_another_is_dropped_at_once(memory, made):
    plain_kind, _, given = made
    gc.disable()
    try:
        plain = plain_kind(memory, *given)
        other = plain.aio
        gone = weakref.ref(plain)
        del plain
        assert gone() is None
        assert type(other.sync) is plain_kind  # rebuilt
    finally:
        gc.enable()


def test_threads_that_ask_at_once_get_one_other_form(memory, made):
    plain_kind, _, given = made
    for _ in range(20):
        plain, found, together = plain_kind(memory, *given), [], threading.Barrier(4)

        def ask(plain=plain, found=found, together=together):
            together.wait()
            found.append(plain.aio)

        run_together(*[ask] * 4)
        assert len(set(map(id, found))) == 1


def test_an_engine_of_a_configuration_is_plain_or_awaited_by_its_class(memory):
    config = HydeConfig(enabled=True, hypothesis_model="echo", embedding_model="words")
    given = {"embedder": memory.embedder, "llm": Echo()}
    for kind in (HydeEngine, AsyncHydeEngine):
        assert type(kind.from_config(memory, config, **given)) is kind


# Used the other way


def entered_plainly(thing):
    with thing:
        pytest.fail("it was entered")


def entered_awaited(thing):
    async def enter():
        async with thing:
            pytest.fail("it was entered")

    asyncio.run(enter())


ENTERED = {
    "memory": lambda memory: memory,
    "long term": lambda _: LongTermMemory(":memory:", embedder=None),
    "engine": lambda memory: HydeEngine(memory, WordEmbedder(), Echo()),
    "turn": lambda memory: HydeEngine(memory, WordEmbedder(), Echo()).turn("tea"),
}


@pytest.fixture(params=ENTERED)
def entered(request, memory):
    return ENTERED[request.param](memory)


@pytest.fixture
def entered_async(entered):
    if isinstance(entered, HydeTurn):
        return AsyncHydeTurn(HydeEngine(Memory(":memory:", embedder=None), None, None).aio, "tea")
    return entered.aio


def test_a_plain_form_is_not_entered_by_async_with(entered):
    name = type(entered).__name__
    with pytest.raises(WrongFormError) as caught:
        entered_awaited(entered)
    assert str(caught.value) == (
        f"{name} is entered by 'with'; to await its calls, take Async{name} and 'async with'"
    )


def test_an_awaited_form_is_not_entered_by_with(entered_async):
    name = type(entered_async).__name__
    with pytest.raises(WrongFormError) as caught:
        entered_plainly(entered_async)
    assert str(caught.value) == (
        f"{name} is entered by 'async with'; for plain calls, take {name[5:]} and 'with'"
    )


def test_the_error_is_what_python_would_raise():
    assert {MnemicError, TypeError, AttributeError} <= set(WrongFormError.__mro__)


def test_a_form_does_not_look_as_if_it_were_entered_the_other_way(entered, entered_async):
    assert not hasattr(entered, "__aenter__")
    assert not hasattr(entered_async, "__enter__")
    assert isinstance(entered, AbstractContextManager)
    assert not isinstance(entered, AbstractAsyncContextManager)
    assert isinstance(entered_async, AbstractAsyncContextManager)
    assert not isinstance(entered_async, AbstractContextManager)
