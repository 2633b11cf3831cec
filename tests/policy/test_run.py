from datetime import timedelta

import pytest

from mnemic import Memory
from mnemic.policy import RetrievalConfig, RetrievalPolicy
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
        assert "the embedder 'words' failed" in payload.metadata.degraded_reason
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


# Doors


def test_nothing_is_written_and_no_access_counted(memory):
    entry = memory.add("The harbour freezes.", user_id="alice")
    RetrievalPolicy(memory, BY_KEYWORDS).run(request())
    listed = memory.list(user_id="alice").entries[0]
    assert (listed.access_count, listed.last_accessed_at) == (0, None)
    assert listed == entry
    assert listed.created_at > NOON
