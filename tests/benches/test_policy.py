"""The texts, checks and figures of the retrieval policy's benchmarks; nothing is timed here."""

import importlib

import pytest

from benches import policy
from benches.policy_texts import DUPLICATES, candidates, distinct, paragraphs
from mnemic import fingerprint
from mnemic.policy import RetrievalPolicy


def test_paragraphs_have_their_length_and_are_the_same_each_time():
    texts = paragraphs(50)
    assert all(1_900 < len(text) < 2_100 for text in texts)
    assert len(set(texts)) == 50
    assert texts == paragraphs(50)
    assert texts != paragraphs(50, seed=1)


@pytest.mark.parametrize("count", [9, 10, 40, 1_000])
def test_a_tenth_of_the_candidates_repeat_another(count):
    found = candidates(count)
    assert len({fingerprint(memory.content) for memory in found}) == distinct(count)
    assert distinct(count) == count - count // DUPLICATES
    assert [memory.score for memory in found] == sorted(
        (memory.score for memory in found), reverse=True
    )
    assert len({memory.timestamp for memory in found}) == count


def test_the_steps_are_checked_before_they_are_timed(monkeypatch):
    policy.check(candidates(40))
    monkeypatch.setattr(policy, "TOP_K", 7)
    with pytest.raises(AssertionError):
        policy.check(candidates(40))


def test_single_functions_and_the_whole_pipeline_choose_the_same_memories():
    found = candidates(40)
    together = policy.pack(found, policy.PLAN)
    apart = policy.step_by_step(found)
    assert apart.count("\n- ") + apart.count("\n[") == len(together.kept)
    assert apart == together.text


def test_runs_over_a_filled_memory_are_checked(path, monkeypatch):
    monkeypatch.setattr(policy, "ROUNDS", 10)
    with policy.filled(path, 400) as memory:
        assert memory.count(user_id="user 3") == 40
        run = policy.run_of(RetrievalPolicy(memory, policy.configuration()))
        for question in policy.questions():
            payload = run(question)
            assert len(payload.memories) == policy.TOP_K
            assert payload.metadata.total_results == 2 * policy.TOP_K


def test_memory_of_a_call_is_what_it_held_at_once():
    assert 1_000_000 < policy.peak_of(lambda: bytearray(1_000_000)) < 1_100_000


@pytest.mark.parametrize("name", ["benches.suite.test_policy", "benches.asv.policy"])
def test_the_rows_of_the_suites_can_be_loaded(name):
    pytest.importorskip("pytest_benchmark")
    importlib.import_module(name)
