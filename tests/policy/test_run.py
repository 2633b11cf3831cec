import pytest

from mnemic import Memory
from mnemic.policy import INTERLEAVED, RetrievalConfig, RetrievalPolicy
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.policy import BY_KEYWORDS, DOORS, ids_of, prompt_of, request


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


def test_sensitive_memories_are_left_out_unless_wanted(memory):
    for number in range(20):
        memory.add(f"harbour secret {number}", user_id="alice", sensitive=True)
    plain = memory.add("harbour", user_id="alice")
    payload = RetrievalPolicy(memory, BY_KEYWORDS).run(request("harbour secret"))
    assert ids_of(payload) == [str(plain.id)], "they take no other's place"
    config = BY_KEYWORDS.overridden(include_sensitive=True)
    assert "secret" in prompt_of(memory, request("harbour secret"), config=config)


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


def test_the_counter_counts_the_tokens_of_the_block(memory):
    for number in range(12):
        memory.add(f"harbour report {number}", user_id="alice")

    class Letters:
        def count(self, text):
            return len(text)

    config = RetrievalConfig(search_type="keyword", min_score=0, max_tokens=200)
    payload = RetrievalPolicy(memory, config, counter=Letters()).run(request("harbour report"))
    assert payload.metadata.total_tokens == len(payload.prompt) <= 200
    assert any(each.step == "budget" for each in payload.metadata.dropped)


# Doors


def test_nothing_is_written_and_no_access_counted(memory):
    entry = memory.add("The harbour freezes.", user_id="alice")
    RetrievalPolicy(memory, BY_KEYWORDS).run(request())
    listed = memory.list(user_id="alice").entries[0]
    assert (listed.access_count, listed.last_accessed_at) == (0, None)
    assert listed == entry
    assert listed.created_at > NOON


@pytest.mark.requirement("C211")
@pytest.mark.parametrize("max_tokens", [100, 400, 1500])
def test_a_block_takes_the_best_memories_until_its_tokens_are_spent(memory, max_tokens):
    memory.add_many(
        [
            {"content": "harbour " * (1 + at % 7) + f"report {at}", "user_id": "alice"}
            for at in range(200)
        ]
    )
    config = RetrievalConfig(search_type="keyword", min_score=0, max_tokens=max_tokens)
    payload = RetrievalPolicy(memory, config).run(request("harbour report"))
    assert 0.85 * max_tokens < payload.metadata.total_tokens <= max_tokens
    scores = [each.score for each in payload.memories]
    assert scores == sorted(scores, reverse=True)
    best = memory.search("harbour report", limit=5, search_type="keyword", user_id="alice")
    assert ids_of(payload)[:3] == [str(hit.entry.id) for hit in best][:3]


@pytest.mark.requirement("C211", "R294")
@pytest.mark.parametrize(
    ("config", "answers"), [(RetrievalConfig(max_tokens=200), True), (INTERLEAVED, False)]
)
def test_sentences_that_match_stay_unless_a_number_of_first_ones_is_set(memory, config, answers):
    text = "Hello! Thanks for asking. The gate code is 4711. Bye." + " See you." * 60
    memory.add(text, user_id="alice")
    memory.add_many([{"content": f"Note {at}", "user_id": "alice"} for at in range(20)])
    config = config.overridden(search_type="keyword", min_score=0)
    payload = RetrievalPolicy(memory, config).run(request("What is the gate code?"))
    assert ("4711" in payload.prompt) is answers
    assert ("Hello! Thanks for asking…" in payload.prompt) is not answers
