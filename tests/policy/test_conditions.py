import pytest

from mnemic import Memory
from mnemic.policy import RetrievalConfig, RetrievalPolicy, Trigger, trigger
from tests.support.policy import DOORS, request


def never():
    raise AssertionError("a condition before it is not met")


@pytest.mark.requirement("R282", "C050")
@pytest.mark.parametrize(
    ("fields", "conditions", "reason"),
    [
        ({}, {}, "met"),
        ({}, {"has_memories": lambda: True, "is_rate_limited": lambda: False}, "met"),
        (
            {"use_memory": False, "session_id": None},
            {"has_memories": never, "is_rate_limited": never},
            "memory_off",
        ),
        (
            {"session_id": None},
            {"has_memories": never, "is_rate_limited": never},
            "no_valid_session",
        ),
        ({}, {"has_memories": never, "is_rate_limited": True}, "rate_limited"),
        ({}, {"has_memories": False, "is_rate_limited": False}, "no_memories"),
        ({}, {"is_rate_limited": lambda: True}, "rate_limited"),
    ],
)
def test_the_conditions_are_judged_in_their_order(fields, conditions, reason):
    judged = trigger(request(**fields), **conditions)
    assert judged == Trigger(reason == "met", reason)
    assert bool(judged) is (reason == "met")
    assert judged.sentence.endswith(".")


@pytest.mark.requirement("R282", "C056")
@pytest.mark.parametrize("session_id", [None, "", "  ", "\t", "a\nb", "\0", "\ud800", "a\x85"])
def test_a_session_without_a_name_is_not_valid(session_id):
    assert trigger(request(session_id=session_id)).reason == "no_valid_session"


@pytest.mark.parametrize("session_id", ["1", "会话", "a b", "session:🙂", "x" * 5000])
def test_any_name_is_a_valid_session(session_id):
    assert trigger(request(session_id=session_id))


@pytest.mark.requirement("R282")
@pytest.mark.parametrize("door", DOORS)
def test_a_policy_judges_a_request_without_a_search(door, monkeypatch):
    with Memory(":memory:", embedder=None) as memory:
        policy = RetrievalPolicy(memory)
        call = DOORS[door]
        monkeypatch.setattr(memory.repository.finder, "find", lambda *_, **__: never())
        assert call(policy, "trigger", request()).reason == "no_memories"
        added = memory.add("The harbour freezes.", user_id="alice")
        assert call(policy, "trigger", request()).reason == "met"
        assert call(policy, "trigger", request(user_id="bob")).reason == "no_memories"
        assert call(policy, "trigger", request(user_id=None)).reason == "no_memories"
        assert call(policy, "trigger", request(use_memory=False)).reason == "memory_off"
        memory.delete(added.id, user_id="alice")
        assert call(policy, "trigger", request()).reason == "no_memories"


def test_a_user_has_a_collection_as_soon_as_another_process_writes(tmp_path):
    path = tmp_path / "memories.db"
    with Memory(path, embedder=None) as mine, Memory(path, embedder=None) as other:
        policy = RetrievalPolicy(mine)
        assert policy.trigger(request()).reason == "no_memories"
        entry = other.add("The harbour freezes.", user_id="alice")
        assert policy.trigger(request())
        other.delete(entry.id, user_id="alice", permanent=True)
        assert policy.trigger(request()).reason == "no_memories"


def test_memories_of_another_project_are_no_collection():
    with Memory(":memory:", embedder=None) as memory:
        memory.scoped(project_id="boats").add("The harbour freezes.", user_id="alice")
        policy = RetrievalPolicy(memory)
        assert policy.trigger(request(project_id="boats"))
        assert policy.trigger(request())
        assert policy.trigger(request(project_id="trains")).reason == "no_memories"


@pytest.mark.requirement("C056")
def test_a_user_with_memories_of_other_sessions_has_a_collection_all_the_same():
    with Memory(":memory:", embedder=None) as memory:
        memory.add("The harbour freezes.", user_id="alice", session_id="yesterday")
        config = RetrievalConfig(same_session_only=True)
        assert RetrievalPolicy(memory, config).trigger(request()).reason == "met"
