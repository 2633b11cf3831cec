"""The evidence for and against a contradiction, and its weights."""

import asyncio

import pytest

from mnemic.contradictions import RuleJudge
from mnemic.contradictions.parse import parse
from mnemic.contradictions.rule_judge import WEIGHTS, evidence
from mnemic.contradictions.signals import Pair

JUDGE = RuleJudge()

CONFIDENCES = [
    ("I live in Oslo", "I moved to Bergen", 0.836),
    ("She eats meat", "She no longer eats meat", 0.836),
    ("She drinks coffee every day", "Tea, never coffee", 0.85),
    ("The rent is 850 euros", "The rent is 900 euros", 0.836),
]
"""Older and newer statements, and how sure the fitted weights are that they contradict."""


def judged(older, newer):
    return asyncio.run(JUDGE.judge(newer, [older]))[0]


@pytest.mark.parametrize(("older", "newer", "confidence"), CONFIDENCES)
def test_a_confidence_is_the_logistic_function_of_the_weighted_evidence(older, newer, confidence):
    assert judged(older, newer).confidence == confidence


def test_every_piece_of_evidence_has_a_weight():
    texts = ("Irma has two sons.", "Irma has three sons.", "Irma's sons sing.")
    readings = [parse(text) for text in texts]
    signalled, _ = evidence(Pair(readings[0], readings[1]))
    silent, _ = evidence(Pair(readings[0], readings[2]))
    assert signalled.keys() | silent.keys() == WEIGHTS.keys()
