"""Whole runs of the retrieval policy keep the documented scenarios and the rulings about them."""

# ruff: noqa: ARG001 - a scenario gets the setup, even if it needs none

import pytest

from mnemic._core import estimate_tokens
from mnemic.errors import MnemicError, StoreError
from mnemic.policy import Redaction, RetrievalConfig
from mnemic.repository import Repository
from mnemic.repository.find import Finder
from mnemic.repository.freshness import Freshness
from tests.support.clock import SECOND
from tests.support.policy_setups import PolicySetup, asked


@pytest.fixture(params=["sync", "async"])
def door(request):
    """Return a function that makes a setup of one door."""
    return lambda entries=(), **options: PolicySetup(
        is_async=request.param == "async", entries=entries, **options
    )


def told(score, words="", **fields):
    return (f"score {score:.4f} {words}".strip(), fields)


def contents(payload):
    return [memory.content for memory in payload.memories]


# The whole run


@pytest.mark.requirement("T088", "R302", "R298", "R290")
def test_twenty_raw_results_give_eight_memories_within_the_budget(door):
    entries = [told(0.9 - number / 100, "tea. " * 200) for number in range(20)]
    entries += [(entries[0][0].upper().replace("SCORE", "score"), {})] * 2

    payload = door(entries).ask(asked())
    assert len(payload.memories) == payload.metadata.included_results == 8
    assert "deduplication" in payload.metadata.applied_filters
    assert payload.metadata.total_tokens <= 1500
    assert payload.metadata.total_tokens == estimate_tokens(payload.prompt)
    assert payload.metadata.total_results == 16
    assert payload.metadata.query_time >= 0
    assert payload.metadata.config.top_k == 8


@pytest.mark.requirement("C036", "R298")
def test_the_threshold_is_applied_and_named(door):
    payload = door([told(0.51), told(0.49)], min_score=0.5).ask(asked())
    assert contents(payload) == ["score 0.5100"]
    assert "score_threshold" in payload.metadata.applied_filters
    assert {dropped.step for dropped in payload.metadata.dropped} <= {"threshold"}


@pytest.mark.requirement("C151", "C200", "C212", "R287")
def test_among_few_memories_an_embedder_without_floors_leaves_none_out(door):
    payload = door([told(0.31), told(0.29)]).ask(asked())
    assert contents(payload) == ["score 0.3100", "score 0.2900"]
    assert payload.metadata.config.min_score == "auto"


@pytest.mark.requirement("C045", "R296", "R297")
@pytest.mark.parametrize("options", [{"clip_sentences": 1}, {"max_tokens": 100}])
def test_redaction_comes_before_every_cut(door, options):
    mails = [
        told(0.9 - at / 100, "x" * at + " Mail me at john.doe@example.com. Now.") for at in range(9)
    ]
    mails += [told(0.8, "filler " * at + "Mail me at john.doe@example.com") for at in range(50, 60)]
    payload = door(mails, redaction=Redaction(enabled=True), **options).ask(asked())
    assert payload.memories
    assert "john" not in payload.prompt
    assert "example" not in payload.prompt
    assert "[REDACTED]" in payload.prompt


@pytest.mark.requirement("C048", "R301", "R327")
def test_provenance_is_accurate(door):
    text = "score 0.9000 My mail is ann@example.com. Second. Third."

    entries = [(text, {}), told(0.8, "plain"), told(0.8, "plain!")]
    entries[2] = ("score 0.8000 plain", {"session_id": "s-2", "created_at": "2020-01-01T00:00:00Z"})
    payload = door(entries, redaction=Redaction(enabled=True)).ask(asked())
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


@pytest.mark.requirement("C057", "C157")
@pytest.mark.parametrize("search_type", ["hybrid", "semantic", "keyword"])
def test_scores_lie_between_zero_and_one(door, search_type):
    entries = [told(at / 10, "tea " * at) for at in range(10)]

    payload = door(entries, search_type=search_type, min_score=0.0).ask(
        asked("tea and cake at noon with friends")
    )
    assert payload.memories
    assert all(0 <= memory.score <= 1 for memory in payload.memories)
    assert {memory.provenance.search_type for memory in payload.memories} == {search_type}


@pytest.mark.requirement("C157")
def test_a_threshold_over_keywords_is_absolute(door):
    texts = ["tea", "a long walk home", "rain again"]
    entries = [(text, {"session_id": text[0]}) for text in texts]

    def scenario(setup):
        payload = yield asked("tea parliament rocket violin")
        assert payload.memories == ()
        payload = yield asked("tea")
        assert contents(payload) == ["tea"]

    door(entries, search_type="keyword", min_score=0.3).run(scenario)


@pytest.mark.requirement("C053", "R281")
def test_the_same_request_gives_the_same_prompt(door):
    entries = [
        told(0.9 - at / 50, f"fact {at}", type=("fact", "conversation", "event")[at % 3])
        for at in range(12)
    ]

    def scenario(setup):
        first = yield asked()
        setup.clock.now += 61 * SECOND
        second = yield asked()
        assert not second.metadata.from_cache
        assert first.prompt == second.prompt
        assert first.memories == second.memories
        assert "ms_" not in first.prompt

    door(entries).run(scenario)


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
def test_a_request_that_does_not_meet_a_condition_runs_no_search(door, request_, reason):
    def scenario(setup):
        before = len(setup.embedder.texts)
        payload = yield request_
        assert not payload.metadata.trigger.should_retrieve
        assert payload.metadata.trigger.reason == reason
        assert (payload.memories, payload.prompt) == ((), "")
        assert (payload.metadata.applied_filters, payload.metadata.search_type) == ((), "")
        assert (payload.metadata.total_results, payload.metadata.total_tokens) == (0, 0)
        assert payload.metadata.error is None
        assert len(setup.embedder.texts) == before

    door([told(0.9)]).run(scenario)


# Errors


@pytest.mark.requirement("C150", "R307", "T087")
def test_a_failing_back_end_skips_and_the_memory_itself_raises(door):
    def scenario(setup):
        setup.embedder.failure = RuntimeError("down")
        payload = yield asked()
        assert payload.metadata.error.code == "ZEP_UNAVAILABLE"
        assert payload.metadata.error.fallback == "skip"
        assert payload.metadata.error.message == "Memory service temporarily unavailable"
        assert payload.prompt == ""
        with pytest.raises(MnemicError):
            yield lambda memory: memory.search(
                "tea", user_id="alice", search_type="semantic", on_embedder_failure="raise"
            )

    door([told(0.9)]).run(scenario)


@pytest.fixture
def break_the_store(monkeypatch):
    """Return a function after whose call no read of the store succeeds."""

    def fail(*_, **__):
        raise StoreError("the disk is gone")

    def broken_now():
        monkeypatch.setattr(Repository, "find", fail)
        monkeypatch.setattr(Finder, "has_memories", fail)
        monkeypatch.setattr(Freshness, "position_and_revision", fail)

    return broken_now


@pytest.mark.requirement("T087", "C049", "R307")
def test_a_failure_after_a_success_is_answered_from_the_cache_for_a_minute(door, break_the_store):
    def scenario(setup):
        first = yield asked()
        break_the_store()
        setup.clock.now += 60 * SECOND
        second = yield asked()
        assert second.metadata.from_cache
        assert second.metadata.age == pytest.approx(60)
        assert second.prompt == first.prompt
        assert second.metadata.error.code == "ZEP_UNAVAILABLE"
        other = yield asked("another question")
        assert other.prompt == ""
        setup.clock.now += SECOND
        third = yield asked()
        assert third.prompt == ""
        assert not third.metadata.from_cache
        assert third.metadata.error.code == "ZEP_UNAVAILABLE"

    door([told(0.9)]).run(scenario)


@pytest.mark.requirement("R282", "R309", "C049")
def test_a_rate_limit_runs_no_search_and_gives_the_payload_of_the_identical_request(door):
    class Limiter:
        left = 1

        def acquire(self, user):
            self.left -= user == "alice"
            return user == "bob" or self.left >= 0

    def scenario(setup):
        first = yield asked()
        searched = len(setup.embedder.texts)
        second = yield asked()
        assert (second.metadata.error.code, second.metadata.error.fallback) == (
            "RATE_LIMITED",
            "cache",
        )
        assert second.metadata.error.message == "Memory retrieval rate limit exceeded"
        assert not second.metadata.trigger.should_retrieve
        assert second.metadata.from_cache
        assert second.prompt == first.prompt
        other = yield asked("another question")
        assert other.prompt == ""
        assert other.metadata.error.code == "RATE_LIMITED"
        assert len(setup.embedder.texts) == searched
        bob = yield asked(user="bob")
        assert bob.metadata.error is None
        assert contents(bob) == ["score 0.8000"]

    door([told(0.9), told(0.8, user_id="bob")], limiter=Limiter()).run(scenario)


@pytest.mark.requirement("T086", "R324", "C051")
def test_a_slow_back_end_times_out_once(door):
    def scenario(setup):
        setup.embedder.delay = 1.0
        before = len(setup.embedder.texts)
        payload = yield asked()
        assert payload.metadata.error.code == "TIMEOUT"
        assert payload.metadata.error.fallback == "skip"
        assert payload.prompt == ""
        assert len(setup.embedder.texts) <= before + 1
        setup.embedder.delay = 0.0

    door([told(0.9)], timeout=0.05).run(scenario)


# Cache


@pytest.mark.requirement("R315", "C149")
def test_identical_queries_are_answered_from_the_cache_for_sixty_seconds(door):
    def scenario(setup):
        first = yield asked()
        searched = len(setup.embedder.texts)
        setup.clock.now += 59 * SECOND
        second = yield asked()
        assert second.metadata.from_cache
        assert second.metadata.age == pytest.approx(59)
        assert (second.memories, second.prompt) == (first.memories, first.prompt)
        assert len(setup.embedder.texts) == searched
        setup.clock.now += 2 * SECOND
        third = yield asked()
        assert not third.metadata.from_cache
        fourth = yield asked("what about  coffee")
        assert not fourth.metadata.from_cache

    assert RetrievalConfig().cache_ttl == 60
    door([told(0.9)]).run(scenario)


@pytest.mark.requirement("C058", "R319", "R320", "R316", "R317", "R318")
def test_the_statistics_have_the_documented_denominators(door):
    entries = [told(0.9, "tea"), told(0.8, "a"), told(0.9, "TEA!"), told(0.7, "b")]

    def scenario(setup):
        first = yield asked()
        yield asked()
        stats = yield lambda _: setup.policy.stats()
        assert stats.dedup_ratio == pytest.approx(25)
        assert stats.cache_hit_rate == pytest.approx(50)
        assert stats.average_results == 3
        assert stats.average_tokens == first.metadata.total_tokens
        assert stats.average_latency_ms > 0

    door(entries).run(scenario)


# Bounds


@pytest.mark.requirement("R312", "R313")
def test_a_run_does_one_search_over_twice_the_memories_it_wants(door):
    entries = [told(0.5 + at / 1000, "tea. " * 400) for at in range(300)]

    def scenario(setup):
        before = len(setup.embedder.texts)
        payload = yield asked()
        assert len(setup.embedder.texts) == before + 1
        assert payload.metadata.total_results == 16
        assert len(payload.metadata.dropped) == 16 - len(payload.memories)

    door(entries).run(scenario)


# Configuration
