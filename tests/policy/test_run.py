import asyncio
import json
import threading
from datetime import timedelta

import pytest

from mnemic import AsyncMemory, Memory, MemoryType
from mnemic.errors import InvalidArgumentError
from mnemic.policy import (
    AsyncRetrievalPolicy,
    FixedWindow,
    RetrievalConfig,
    RetrievalPolicy,
    format_for_system_prompt,
)
from tests.support.clock import NOON, Clock
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder
from tests.support.policy import DOORS, prompt_of, request

BY_KEYWORDS = RetrievalConfig(search_type="keyword", min_score=0)


class Calibrated(WordEmbedder):
    """Has floors of its own."""

    def __init__(self):
        super().__init__()
        self.similarity_floor = 0.2


class Failing(WordEmbedder):
    fails = False

    def embed(self, texts):
        if self.fails:
            raise RuntimeError("out of order")
        return super().embed(texts)


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=None, clock=Clock(step=timedelta(minutes=1))) as memory:
        yield memory


def ids(payload):
    return [each.id for each in payload.memories]


@pytest.mark.requirement("R281", "R290", "R299", "R300", "R301", "R302")
@pytest.mark.parametrize("door", DOORS)
def test_a_message_gives_a_payload_with_provenance_and_metadata(memory, door):
    entry = memory.add(
        "The harbour freezes in January. Boats stay ashore. Nobody sails then.",
        user_id="alice",
        session_id="yesterday",
        message_id="m-7",
        role="user",
        type="conversation",
    )
    payload = DOORS[door](RetrievalPolicy(memory, BY_KEYWORDS), "run", request())
    (found,) = payload.memories
    assert (found.id, found.session_id, found.message_id) == (str(entry.id), "yesterday", "m-7")
    assert found.content == "The harbour freezes in January. Boats stay ashore…"
    assert (found.type, found.role, found.timestamp) == ("message", "user", entry.created_at)
    assert 0 < found.score <= 1
    assert found.provenance.collection == "user:alice"
    assert found.provenance.search_type == "keyword"
    assert found.provenance.original_length == len(entry.content)
    assert not found.provenance.was_redacted
    metadata = payload.metadata
    assert (metadata.total_results, metadata.included_results) == (1, 1)
    assert metadata.total_tokens > 0
    assert metadata.query_time > 0
    assert metadata.config == BY_KEYWORDS
    assert metadata.trigger.should_retrieve
    assert metadata.error is None
    assert payload.prompt == format_for_system_prompt(payload)
    assert "user: The harbour freezes in January. Boats stay ashore…" in payload.prompt


@pytest.mark.requirement("R299", "R300", "R301", "R302", "C039")
def test_a_payload_has_the_documented_shape_in_camel_case(memory):
    memory.add("The harbour freezes.", user_id="alice")
    payload = RetrievalPolicy(memory, BY_KEYWORDS).run(request())
    shape = payload.to_dict(camel_case=True)
    (entry,) = shape["memories"]
    assert {"id", "content", "score", "timestamp", "sessionId", "messageId", "type", "role"} <= set(
        entry
    )
    assert {"collection", "searchType", "originalLength", "wasRedacted"} <= set(entry["provenance"])
    documented = {"queryTime", "totalResults", "includedResults", "totalTokens", "appliedFilters"}
    assert documented | {"config"} <= set(shape["metadata"])
    assert {"topK", "clipSentences", "maxTokens", "searchType", "minScore"} <= set(
        shape["metadata"]["config"]
    )
    assert entry["timestamp"].endswith("Z")
    assert json.loads(payload.to_json()) == payload.to_dict()


@pytest.mark.requirement("R300")
@pytest.mark.parametrize("type_", list(MemoryType))
def test_the_type_of_a_payload_memory_is_that_of_the_memorys_type(memory, type_):
    memory.add("The harbour freezes.", user_id="alice", type=type_)
    (found,) = RetrievalPolicy(memory, BY_KEYWORDS).run(request()).memories
    assert found.type == type_.payload_type


@pytest.mark.requirement("C054")
@pytest.mark.parametrize(
    ("metadata", "confidence"),
    [
        ({"confidence": 0.9}, 0.9),
        ({"confidence": 1}, 1.0),
        ({"confidence": 7}, None),
        ({"confidence": True}, None),
        ({"confidence": "high"}, None),
        ({}, None),
    ],
)
def test_a_facts_own_confidence_is_that_of_its_metadata(memory, metadata, confidence):
    memory.add("The harbour freezes.", user_id="alice", metadata=metadata)
    payload = RetrievalPolicy(memory, BY_KEYWORDS).run(request())
    assert payload.memories[0].confidence == confidence
    assert ("(confidence: 0.90)" in payload.prompt) is (confidence == 0.9)


@pytest.mark.requirement("R290", "C033", "T088")
@pytest.mark.parametrize("door", DOORS)
def test_twice_top_k_are_found_and_at_most_top_k_included(memory, door):
    for number in range(20):
        memory.add(f"harbour report {number}", user_id="alice", session_id=f"s{number % 3}")
    memory.add("harbour report 19", user_id="alice", session_id="again")
    payload = DOORS[door](RetrievalPolicy(memory, BY_KEYWORDS), "run", request("harbour report"))
    metadata = payload.metadata
    assert metadata.total_results == 16
    assert len(payload.memories) == metadata.included_results == 8
    assert len(metadata.dropped) == 8
    assert {"deduplication", "interleaving"} <= set(metadata.applied_filters)
    assert metadata.total_tokens <= 1500
    assert {each.id for each in metadata.dropped}.isdisjoint(ids(payload))


@pytest.mark.requirement("C033", "R293")
def test_the_newest_of_all_candidates_comes_second(memory):
    best = memory.add("harbour harbour ice", user_id="alice")
    for number in range(14):
        memory.add(f"harbour ice {number} and much else to read about it", user_id="alice")
    newest = memory.add("the newest note, where the word harbour is far down", user_id="alice")
    payload = RetrievalPolicy(memory, BY_KEYWORDS).run(request("harbour ice"))
    assert ids(payload)[:2] == [str(best.id), str(newest.id)]


@pytest.mark.requirement("R287", "R298", "C036")
def test_the_threshold_is_inclusive_and_lists_what_it_leaves_out(memory):
    for content in ("harbour ice", "harbour and trains and planes", "ice on the window today"):
        memory.add(content, user_id="alice")
    free = RetrievalPolicy(memory, BY_KEYWORDS).run(request("harbour ice"))
    scores = sorted((each.score for each in free.memories), reverse=True)
    assert "score_threshold" not in free.metadata.applied_filters
    floor = scores[1]
    config = BY_KEYWORDS.overridden(min_score=floor)
    payload = RetrievalPolicy(memory, config).run(request("harbour ice"))
    assert sorted((each.score for each in payload.memories), reverse=True) == scores[:2]
    assert "score_threshold" in payload.metadata.applied_filters
    assert payload.metadata.total_results == 3
    (dropped,) = payload.metadata.dropped
    assert (dropped.step, dropped.score) == ("threshold", scores[2])


@pytest.mark.requirement("R287", "C151", "C200")
def test_an_embedder_without_floors_gets_the_documented_minimum_score():
    with opened() as memory:
        memory.add("the harbour freezes", user_id="alice")
        memory.add("a red sofa", user_id="alice")
        payload = RetrievalPolicy(memory).run(request("the harbour freezes"))
        assert payload.metadata.config.min_score == 0.3
        assert payload.metadata.search_type == "hybrid"
        assert [each.content for each in payload.memories] == ["the harbour freezes"]
        assert all(each.score >= 0.3 for each in payload.memories)
        assert [each.step for each in payload.metadata.dropped] == ["threshold"]
        named = RetrievalPolicy(memory, RetrievalConfig(min_score=0.01)).run(request("harbour"))
        assert named.metadata.config.min_score == 0.01


@pytest.mark.requirement("C151", "C200")
@pytest.mark.parametrize("embedder", [Calibrated(), None])
def test_with_floors_or_by_keywords_the_evidence_decides(embedder):
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("the harbour freezes", user_id="alice")
        policy = RetrievalPolicy(memory)
        payload = policy.run(request("when does the harbour freeze?"))
        assert payload.metadata.config.min_score == "auto"
        assert len(payload.memories) == 1
        expected = "keyword" if embedder is None else "hybrid"
        assert payload.metadata.search_type == expected
        nothing = policy.run(request("xyzzy"))
        assert nothing.metadata.search_type == expected
        assert nothing.memories == ()
        assert nothing.metadata.trigger.should_retrieve


@pytest.mark.parametrize("search_type", ["hybrid", "semantic", "keyword"])
def test_the_search_type_is_that_of_the_configuration(search_type):
    with opened() as memory:
        memory.add("the harbour freezes", user_id="alice")
        config = RetrievalConfig(search_type=search_type, min_score=0)
        payload = RetrievalPolicy(memory, config).run(request("harbour"))
        assert payload.metadata.search_type == search_type
        assert {each.provenance.search_type for each in payload.memories} == {search_type}


@pytest.mark.requirement("R301", "C057")
@pytest.mark.parametrize("door", DOORS)
def test_a_failing_embedder_leaves_a_search_by_keywords(door):
    embedder = Failing()
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("the harbour freezes in winter", user_id="alice")
        memory.add("a red sofa stands in the hall", user_id="alice")
        embedder.fails = True
        payload = DOORS[door](RetrievalPolicy(memory), "run", request("harbour in winter"))
        assert payload.metadata.degraded
        assert payload.metadata.search_type == "keyword"
        assert payload.metadata.config.min_score == "auto", "no similarity, so no floor of it"
        assert payload.memories[0].content == "the harbour freezes in winter"
        assert payload.memories[0].provenance.search_type == "keyword"
        assert DOORS[door](RetrievalPolicy(memory), "run", request("xyzzy")).memories == ()


@pytest.mark.requirement("C057")
@pytest.mark.parametrize("search_type", ["hybrid", "semantic", "keyword"])
@pytest.mark.parametrize("boost", [1.0, 2.0])
def test_scores_are_from_0_to_1_whatever_the_search(search_type, boost):
    with opened() as memory:
        for number in range(12):
            memory.add(f"harbour {'ice ' * number}", user_id="alice", session_id="today")
        config = RetrievalConfig(search_type=search_type, min_score=0, session_boost=boost)
        payload = RetrievalPolicy(memory, config).run(request("harbour ice"))
        assert payload.memories
        assert all(0 <= each.score <= 1 for each in payload.memories)


def test_sensitive_memories_are_left_out_unless_wanted(memory):
    for number in range(20):
        memory.add(f"harbour secret {number}", user_id="alice", sensitive=True)
    plain = memory.add("harbour", user_id="alice")
    payload = RetrievalPolicy(memory, BY_KEYWORDS).run(request("harbour secret"))
    assert ids(payload) == [str(plain.id)], "they take no other's place"
    config = BY_KEYWORDS.overridden(include_sensitive=True)
    assert "secret" in prompt_of(memory, request("harbour secret"), config=config)


@pytest.mark.requirement("C051", "R310")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("message", ["", " \n ", "harbour " * 501, "\ud800 harbour"])
def test_a_blank_or_long_message_is_an_invalid_query_and_no_exception(memory, door, message):
    memory.add("The harbour freezes.", user_id="alice")
    payload = DOORS[door](RetrievalPolicy(memory), "run", request(message))
    assert payload.metadata.error.code == "INVALID_QUERY"
    assert payload.metadata.trigger.should_retrieve
    assert (payload.memories, payload.prompt) == ((), "")


@pytest.mark.requirement("C051")
def test_the_longest_message_is_configurable(memory):
    memory.add("The harbour freezes.", user_id="alice")
    longest = "harbour ".ljust(4000, "x")
    assert RetrievalPolicy(memory).run(request(longest)).metadata.error is None
    policy = RetrievalPolicy(memory, RetrievalConfig(max_query_length=10))
    assert policy.run(request("harbour 10")).metadata.error is None
    assert policy.run(request("harbour 11.")).metadata.error.code == "INVALID_QUERY"


def test_filters_of_a_request_choose_among_the_memories(memory):
    memory.add("harbour one", user_id="alice", tags=["boats"])
    memory.add("harbour two", user_id="alice")
    policy = RetrievalPolicy(memory, BY_KEYWORDS)
    payload = policy.run(request("harbour", filters={"tags": {"any": ["boats"]}}))
    assert [each.content for each in payload.memories] == ["harbour one"]


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


@pytest.mark.requirement("R281", "R321")
def test_equal_requests_give_equal_payloads_but_for_the_time_they_took(memory):
    for number in range(30):
        memory.add(f"harbour report {number % 7} of {number % 3}", user_id="alice")
    timer = iter(range(1000)).__next__
    first, second = (
        RetrievalPolicy(memory, BY_KEYWORDS, clock=timer).run(request("harbour report"))
        for _ in range(2)
    )
    assert first == second
    assert first.metadata.query_time == 1000


def test_the_counter_counts_the_tokens_of_the_block(memory):
    for number in range(12):
        memory.add(f"harbour report {number}", user_id="alice")

    class Letters:
        def count(self, text):
            return len(text)

    config = RetrievalConfig(search_type="keyword", min_score=0, max_tokens=300)
    payload = RetrievalPolicy(memory, config, counter=Letters()).run(request("harbour report"))
    assert payload.metadata.total_tokens == len(payload.prompt) <= 300
    assert any(each.step == "budget" for each in payload.metadata.dropped)


# Sessions


@pytest.mark.requirement("C056", "R325")
def test_memories_of_all_sessions_are_found_unless_only_those_of_one_are_wanted(memory):
    for session in ("today", "yesterday", None):
        memory.add(f"harbour of {session}", user_id="alice", session_id=session)
    policy = RetrievalPolicy(memory, BY_KEYWORDS)
    assert len(policy.run(request("harbour")).memories) == 3
    only = RetrievalPolicy(memory, BY_KEYWORDS.overridden(same_session_only=True))
    assert {each.session_id for each in only.run(request("harbour")).memories} == {"today"}


@pytest.mark.requirement("C056")
@pytest.mark.parametrize("boost", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("embedder", [None, WordEmbedder()])
def test_a_boosted_ranking_is_that_of_all_memories_by_their_boosted_scores(embedder, boost):
    with Memory(":memory:", embedder=embedder, clock=Clock(step=timedelta(minutes=1))) as memory:
        for number in range(150):
            filler = " ".join(f"word{number * 7 % (each + 3)}" for each in range(number % 23))
            session = "today" if number % 10 == 0 else f"s{number % 4}"
            memory.add(f"harbour {filler}", user_id="alice", session_id=session)
        config = RetrievalConfig(min_score=0).overridden(session_boost=boost)
        payload = RetrievalPolicy(memory, config.overridden(top_k=20)).run(request("harbour word1"))
        seen = [*payload.memories, *payload.metadata.dropped]
        hits = memory.search("harbour word1", limit=150, user_id="alice")
        scores = [min(1.0, hit.score * (boost if hit.session_id == "today" else 1)) for hit in hits]
        best = sorted(scores, reverse=True)[:40]
        assert sorted((each.score for each in seen), reverse=True) == pytest.approx(best, abs=0)
        assert payload.metadata.total_results == 40


@pytest.mark.requirement("C056")
def test_a_boost_lifts_a_memory_of_the_session_over_better_ones(memory):
    for number in range(40):
        memory.add(f"harbour ice {number}", user_id="alice", session_id="other")
    mine = memory.add("harbour ice and a little more of it", user_id="alice", session_id="today")
    asked = request("harbour ice")
    plain = RetrievalPolicy(memory, BY_KEYWORDS.overridden(strategy="score_first")).run(asked)
    assert str(mine.id) not in ids(plain)
    config = BY_KEYWORDS.overridden(strategy="score_first", session_boost=1.5)
    payload = RetrievalPolicy(memory, config).run(asked)
    assert ids(payload)[0] == str(mine.id)


@pytest.mark.requirement("C056")
def test_a_boost_ranks_no_further_than_it_must(memory, monkeypatch):
    for number in range(60):
        memory.add(f"harbour {'and so on ' * number}", user_id="alice", session_id="today")
    asked, find = [], memory.repository.find

    def counted(scope, search, *needs):
        asked.append(search.limit)
        return find(scope, search, *needs)

    monkeypatch.setattr(memory.repository, "find", counted)
    config = BY_KEYWORDS.overridden(session_boost=2.0)
    RetrievalPolicy(memory, config).run(request("harbour"))
    assert asked == [16], "all are of the session"
    asked.clear()
    RetrievalPolicy(memory, config).run(request("harbour", session_id="tomorrow"))
    assert asked == [16, 256], "any other might be"


@pytest.mark.requirement("C056")
def test_the_best_of_a_session_rise_from_behind_hundreds_of_others():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        others = [
            {"content": f"harbour {number}", "user_id": "alice", "session_id": "other"}
            for number in range(500)
        ]
        memory.add_many(others)
        mine = memory.add("harbour far away", user_id="alice", session_id="today")
        config = RetrievalConfig(
            search_type="semantic", min_score=0, strategy="score_first", timeout=None
        )
        plain = memory.search("harbour", user_id="alice", search_type="semantic", limit=1000)
        place = [hit.id for hit in plain].index(mine.id)
        assert place >= 256
        assert plain[place].score * 2 > plain[0].score
        payload = RetrievalPolicy(memory, config.overridden(session_boost=2.0)).run(
            request("harbour")
        )
        assert ids(payload)[0] == str(mine.id)
        assert payload.memories[0].score == min(1.0, 2 * plain[place].score)


# Walls


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
                memory.add(f"harbour of {user} and {project}", user_id=user, project_id=project)
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


# Doors


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


def test_an_asynchronous_memory_has_both_doors_too():
    async def main():
        async with await AsyncMemory.open(":memory:", embedder=None) as memory:
            await memory.add("The harbour freezes.", user_id="alice")
            policy = AsyncRetrievalPolicy(memory, BY_KEYWORDS)
            awaited = await policy.run(request())
            plain = policy.sync.run(request())
            assert ids(awaited) == ids(plain) != []

    asyncio.run(main())


def test_threads_and_event_loops_use_one_policy_at_once(memory):
    for user in range(4):
        for number in range(10):
            memory.add(f"harbour {number} of {user}", user_id=f"user{user}")
    policy = RetrievalPolicy(memory, BY_KEYWORDS)
    alone = {user: ids(policy.run(request("harbour", user_id=f"user{user}"))) for user in range(4)}
    wrong = []

    def plain(user):
        asked = request("harbour", user_id=f"user{user}")
        found = [ids(policy.run(asked)) for _ in range(10)]
        wrong.extend(user for each in found if each != alone[user])

    def awaited(user):
        async def main():
            asked = [policy.aio.run(request("harbour", user_id=f"user{user}")) for _ in range(10)]
            wrong.extend(
                user for found in await asyncio.gather(*asked) if ids(found) != alone[user]
            )

        asyncio.run(main())

    threads = [
        threading.Thread(target=work, args=(user,))
        for user in range(4)
        for work in (plain, awaited)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_reprs_show_no_content(memory):
    memory.add("The harbour freezes.", user_id="alice", role="zqrole", speaker="zqspeaker")
    policy = RetrievalPolicy(memory, BY_KEYWORDS)
    asked = request("The harbour zqword")
    payload = policy.run(asked)
    assert payload.memories
    for shown in map(repr, (policy, policy.aio, asked, payload, *payload.memories)):
        assert not any(word in shown for word in ("harbour", "zqword", "zqrole", "zqspeaker"))


def test_nothing_is_written_and_no_access_counted(memory):
    entry = memory.add("The harbour freezes.", user_id="alice")
    RetrievalPolicy(memory, BY_KEYWORDS).run(request())
    listed = memory.list(user_id="alice").entries[0]
    assert (listed.access_count, listed.last_accessed_at) == (0, None)
    assert listed == entry
    assert listed.created_at > NOON
