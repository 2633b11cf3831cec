import pytest

from mnemic import Memory
from mnemic.policy import INTERLEAVED, Redaction, RetrievalConfig, RetrievalPolicy
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.policy import BY_KEYWORDS, DOORS, ids_of, prompt_of, request
from tests.support.policy_setups import ScoredEmbedder, asked, policy_over


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


@pytest.fixture(params=DOORS)
def ask(request):
    """Ask a policy over memories, at each door."""

    def payload_of(entries, wanted, **options):
        with policy_over(entries, **options) as (_, policy):
            return DOORS[request.param](policy, "run", wanted)

    return payload_of


def told(score, words="", **fields):
    return (f"score {score:.4f} {words}".strip(), fields)


# The whole run


@pytest.mark.requirement("C048", "R301", "R327")
def test_provenance_is_accurate(ask):
    text = "score 0.9000 My mail is ann@example.com. Second. Third."

    entries = [(text, {}), told(0.8, "plain"), told(0.8, "plain!")]
    entries[2] = ("score 0.8000 plain", {"session_id": "s-2", "created_at": "2020-01-01T00:00:00Z"})
    payload = ask(entries, asked(), redaction=Redaction(enabled=True))
    by_content = {memory.content: memory.provenance for memory in payload.memories}
    first = by_content["score 0.9000 My mail is [REDACTED]. Second…"]
    assert first.collection == "user:alice"
    assert first.search_type == "semantic"
    assert first.original_length == len(text)
    assert (first.was_redacted, first.was_clipped, first.position) == (True, True, 0)
    other = by_content["score 0.8000 plain"]
    assert (other.was_redacted, other.was_clipped, other.position) == (False, False, 1)
    assert other.original_length == len("score 0.8000 plain")
    assert len(other.duplicate_ids) == 1


@pytest.mark.requirement("C157")
def test_a_threshold_over_keywords_is_absolute(ask):
    texts = ["tea", "a long walk home", "rain again"]
    entries = [(text, {"session_id": text[0]}) for text in texts]
    options = {"search_type": "keyword", "min_score": 0.3}
    assert ask(entries, asked("tea parliament rocket violin"), **options).memories == ()
    (found,) = ask(entries, asked("tea"), **options).memories
    assert found.content == "tea"


# The conditions


@pytest.mark.requirement("R282", "C050")
@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (asked(use_memory=False), "memory_off"),
        (asked(session=""), "no_valid_session"),
        (asked(user="nobody"), "no_memories"),
    ],
)
def test_a_request_that_does_not_meet_a_condition_runs_no_search(
    ask, monkeypatch, request_, reason
):
    texts = []
    monkeypatch.setattr(ScoredEmbedder, "vector", lambda _, text: texts.append(text) or [1.0, 0.0])
    payload = ask([told(0.9)], request_)
    assert not payload.metadata.trigger.should_retrieve
    assert payload.metadata.trigger.reason == reason
    assert (payload.memories, payload.prompt) == ((), "")
    assert (payload.metadata.applied_filters, payload.metadata.search_type) == ((), "")
    assert (payload.metadata.total_results, payload.metadata.total_tokens) == (0, 0)
    assert payload.metadata.error is None
    assert texts == ["score 0.9000"], "no text of a search"
