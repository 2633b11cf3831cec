"""Every verb that takes a user can include all users, or is on a short list with its reason."""

import asyncio
import inspect
from uuid import UUID

import pytest

from mnemic import AsyncMemory, Memory
from mnemic.async_memory import AsyncScopedMemory
from mnemic.compat import AsyncLongTermMemory, AsyncMemoryRetriever, AsyncRetrievalService
from mnemic.errors import AmbiguousIdError, InvalidArgumentError
from mnemic.memory import ScopedMemory
from mnemic.model.recall import AllRecallFields
from tests.support.embedders import WordEmbedder
from tests.support.places import SEARCHED, STORES

MEMORIES = (Memory, ScopedMemory, AsyncMemory, AsyncScopedMemory)
FOR_ONE_USER = {
    "add": "a memory is stored for one user, or for none",
    "add_many": "as add; a record names its own",
    "add_document": "as add",
    "scoped": "it binds what later calls see; a call of the unbound memory widens",
}
OF_WHAT_IS_MADE = {"add", "add_many", "add_document", "scoped"}
DOCUMENTED = {("AsyncLongTermMemory", "delete_all"): "the document's call names one user"}
WHOLE_FILE = {
    "backup",
    "verify",
    "erase_pending",
    "close",
    "aclose",
    "retrieval_stats",
}
WHOLE_FILE |= {"drop_vectors", "reembed", "rotate_key", "forget_agent"}
BY_RECORDS = {"import_", "store", "store_batch", "users", "get_stats", "model_of"}
"""Verbs for records that name their users, and for the operator of all users."""


def verbs_of(kind):
    return {
        name: inspect.signature(verb)
        for name, verb in inspect.getmembers(kind, callable)
        if not name.startswith("_")
    }


@pytest.mark.parametrize(
    "kind", [*MEMORIES, AsyncLongTermMemory, AsyncMemoryRetriever, AsyncRetrievalService]
)
def test_every_verb_that_takes_a_user_can_include_all(kind):
    for name, signature in verbs_of(kind).items():
        given = signature.parameters
        if "user_id" not in given or name in FOR_ONE_USER or (kind.__name__, name) in DOCUMENTED:
            continue
        fields = any(each.kind is each.VAR_KEYWORD for each in given.values())
        if kind is AsyncMemoryRetriever and fields:
            assert "all_users" in AllRecallFields.__annotations__
            continue
        assert "all_users" in given, name
        everyone = given["all_users"]
        assert (everyone.kind, everyone.default) == (everyone.KEYWORD_ONLY, False), name


@pytest.mark.parametrize("kind", [*MEMORIES, AsyncLongTermMemory])
def test_every_verb_takes_a_user_or_is_for_the_whole_file(kind):
    without = {
        name for name, signature in verbs_of(kind).items() if "user_id" not in signature.parameters
    }
    assert without <= WHOLE_FILE | BY_RECORDS


@pytest.mark.parametrize("kind", MEMORIES)
def test_scope_comes_last_in_every_verb(kind):
    for name, signature in verbs_of(kind).items():
        names = [
            each.name
            for each in signature.parameters.values()
            if each.kind is not each.VAR_KEYWORD and each.name != "self"
        ]
        assert "project_id" not in names or name == "scoped"
        if "user_id" in names and name not in OF_WHAT_IS_MADE:
            scope = ["user_id", "session_id"]
            wanted = scope if name in FOR_ONE_USER else [*scope, "all_users"]
            assert names[-len(wanted) :] == wanted, name


ONE, SHARED = UUID(int=1), UUID(int=9)
BY_ID = {
    "get": lambda memory, at, **scope: memory.get(at, **scope),
    "update": lambda memory, at, **scope: memory.update(at, importance=0.7, **scope),
    "touch": lambda memory, at, **scope: memory.touch([at], **scope),
    "similar": lambda memory, at, **scope: memory.similar(at, **scope),
    "linked": lambda memory, at, **scope: memory.linked(at, **scope),
    "links": lambda memory, at, **scope: memory.links(at, **scope),
    "salience": lambda memory, at, **scope: memory.salience(at, **scope),
    "reinforce": lambda memory, at, **scope: memory.reinforce(at, "repeated_access", **scope),
    "delete": lambda memory, at, **scope: memory.delete(at, **scope),
    "restore": lambda memory, at, **scope: memory.restore(at, **scope),
}


@pytest.mark.parametrize("places", SEARCHED, indirect=True)
@pytest.mark.parametrize("verb", BY_ID)
def test_a_verb_by_id_finds_the_one_memory_of_all_users_and_refuses_one_of_several(verb, places):
    call = BY_ID[verb]
    with places.opened(embedder=WordEmbedder()) as memory:
        memory.add("one", id=ONE, user_id="alice")
        for user_id in ("alice", "bob"):
            memory.add(f"of {user_id}", id=SHARED, user_id=user_id)
        if verb == "restore":
            memory.delete_many([ONE, SHARED], user_id="alice")
            memory.delete(SHARED, user_id="bob")
        call(memory, ONE, all_users=True)
        if verb == "touch":
            assert len(memory.search("one", filters={"access_count": 1}, user_id="alice")) == 1
        with pytest.raises(AmbiguousIdError, match="name the user_id"):
            call(memory, SHARED, all_users=True)
        for scope in ({"user_id": "alice"}, {}):
            view = memory.scoped(**scope)
            with pytest.raises(InvalidArgumentError, match="all_users"):
                call(view, ONE, user_id="alice", all_users=True)


@pytest.mark.parametrize("places", STORES, indirect=True)
def test_a_retriever_finds_a_memory_among_all_users(places):
    async def scenario(memory):
        retriever = AsyncMemoryRetriever(memory)
        stored = await memory.add("one", user_id="alice", importance=0.5)
        await retriever.record_use([stored.id], None, all_users=True)
        raised = await retriever.reinforce(stored.id, "repeated_access", None, all_users=True)
        assert raised.importance == pytest.approx(0.6)
        parts = await retriever.salience(stored.id, None, all_users=True)
        assert parts.frequency > 0
        with pytest.raises(InvalidArgumentError, match="all_users"):
            await retriever.salience(stored.id, "alice", all_users=True)

    with places.opened(embedder=None) as memory:
        asyncio.run(scenario(memory.aio))
