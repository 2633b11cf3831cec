"""The doors of a policy: its request, its scope, and the plain and the awaited form."""

import asyncio
from functools import partial

import pytest

from mnemic import Memory
from mnemic.errors import InvalidArgumentError
from mnemic.policy import AsyncRetrievalPolicy, FixedWindow, RetrievalPolicy
from tests.support.policy import BY_KEYWORDS, DOORS, ids_of, request
from tests.support.threads import run_together


def test_a_policy_takes_no_other_request_than_its_own(memory):
    policy = RetrievalPolicy(memory)
    for wrong in ("harbour", None, {"message": "harbour"}):
        with pytest.raises(InvalidArgumentError, match="request must be a RetrievalRequest"):
            policy.run(wrong)
        with pytest.raises(InvalidArgumentError, match="request must be a RetrievalRequest"):
            asyncio.run(policy.aio.run(wrong))
    with pytest.raises(InvalidArgumentError, match="did you mean 'request'"):
        policy.run(requst=request())
    with pytest.raises(InvalidArgumentError, match="did you mean 'settings'"):
        RetrievalPolicy(memory, setings=None)
    with pytest.raises(InvalidArgumentError, match="memory must be a Memory"):
        RetrievalPolicy("memory")
    with pytest.raises(InvalidArgumentError, match="counter must have a method 'count'"):
        RetrievalPolicy(memory, counter=len)


@pytest.mark.parametrize("door", DOORS)
def test_no_memory_of_another_user_project_or_agent_is_found(tmp_path, door):
    path = tmp_path / "memories.db"
    with (
        Memory(path, "aide", embedder=None) as memory,
        Memory(path, "other", embedder=None) as other,
    ):
        other.add("harbour of the other agent", user_id="alice")
        for user in ("alice", "bob", None):
            for project in ("boats", "trains", None):
                memory.scoped(project_id=project).add(
                    f"harbour of {user} and {project}", user_id=user
                )
        policy = RetrievalPolicy(memory, BY_KEYWORDS)
        for user in ("alice", "bob", None):
            asked = request("harbour", user_id=user)
            payload = DOORS[door](policy, "run", asked)
            assert {each.content for each in payload.memories} == {
                f"harbour of {user} and {project}" for project in ("boats", "trains", None)
            }
            collection = f"user:{user}" if user else "agent:aide"
            assert {each.provenance.collection for each in payload.memories} == {collection}
            asked = request("harbour", user_id=user, project_id="boats")
            (only,) = DOORS[door](policy, "run", asked).memories
            assert only.content == f"harbour of {user} and boats"


@pytest.mark.parametrize("door", DOORS)
def test_a_policy_over_a_scoped_memory_cannot_leave_it(memory, door):
    for user in ("alice", "bob"):
        for session in ("today", "yesterday"):
            memory.add(f"harbour of {user}, {session}", user_id=user, session_id=session)
    call = DOORS[door]
    of_alice = RetrievalPolicy(memory.scoped(user_id="alice"), BY_KEYWORDS)
    for asked in (request("harbour"), request("harbour", user_id=None)):
        payload = call(of_alice, "run", asked)
        assert {each.content for each in payload.memories} == {
            "harbour of alice, today",
            "harbour of alice, yesterday",
        }
    for verb in ("run", "trigger"):
        with pytest.raises(InvalidArgumentError, match="user_id is bound to 'alice'"):
            call(of_alice, verb, request("harbour", user_id="bob"))
    of_today = RetrievalPolicy(memory.scoped(user_id="alice", session_id="today"), BY_KEYWORDS)
    (found,) = call(of_today, "run", request("harbour")).memories
    assert found.content == "harbour of alice, today"
    for verb in ("run", "trigger"):
        with pytest.raises(InvalidArgumentError, match="session_id is bound to 'today'"):
            call(of_today, verb, request("harbour", session_id="yesterday"))
    limited = RetrievalPolicy(memory.scoped(session_id="today"), limiter=FixedWindow(1, 60))
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="session_id is bound to 'today'"):
            call(limited, "run", request("harbour", session_id="yesterday"))


def test_both_doors_are_one_policy(memory):
    policy = RetrievalPolicy(memory)
    awaited = policy.aio
    assert isinstance(awaited, AsyncRetrievalPolicy)
    assert policy.aio is awaited
    assert awaited.sync is policy
    assert awaited.config is policy.config
    alone = AsyncRetrievalPolicy(memory)
    assert alone.sync.aio is alone
    assert "default" in repr(policy)


def test_threads_and_event_loops_use_one_policy_at_once(memory):
    for user in range(4):
        for number in range(10):
            memory.add(f"harbour {number} of {user}", user_id=f"user{user}")
    policy = RetrievalPolicy(memory, BY_KEYWORDS.overridden(timeout=None))
    alone = {
        user: ids_of(policy.run(request("harbour", user_id=f"user{user}"))) for user in range(4)
    }
    wrong = []

    def plain(user):
        asked = request("harbour", user_id=f"user{user}")
        found = [ids_of(policy.run(asked)) for _ in range(10)]
        wrong.extend(user for each in found if each != alone[user])

    def awaited(user):
        async def main():
            asked = [policy.aio.run(request("harbour", user_id=f"user{user}")) for _ in range(10)]
            wrong.extend(
                user for found in await asyncio.gather(*asked) if ids_of(found) != alone[user]
            )

        asyncio.run(main())

    run_together(*[partial(work, user) for user in range(4) for work in (plain, awaited)])
    assert wrong == []
