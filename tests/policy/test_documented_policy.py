"""Whole runs of the retrieval policy keep the documented scenarios and the rulings about them."""

# ruff: noqa: ARG001 - a scenario gets the setup, even if it needs none

import pytest

from mnemic._core import estimate_tokens
from mnemic.policy import Redaction
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
