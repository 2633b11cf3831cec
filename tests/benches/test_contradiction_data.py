"""The labelled pairs for judging contradictions are whole, balanced and kept apart."""

import json
import re
from collections import Counter

import pytest

from tests.support.paths import ROOT

DATA = ROOT / "benches" / "contradictions" / "data"
PARTS = ("dev", "dev2", "held_out")
DAILY = ("daily", "daily_held_out")
MIXED = {
    "negation",
    "antonym",
    "number",
    "date_time",
    "unit",
    "attribute",
    "preference",
    "technical",
    "state",
}
NEVER = {
    "other_subject",
    "other_attribute",
    "paraphrase",
    "addition",
    "conversion",
    "unrelated",
}

DAILY_KINDS = {
    "opinion",
    "wish",
    "condition",
    "other_person",
    "reminder",
    "ended_past",
    "habit",
    "quantity",
}


def load(part):
    lines = (DATA / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def parts():
    return {part: load(part) for part in PARTS}


@pytest.fixture(scope="module")
def daily():
    return {part: load(part) for part in DAILY}


def texts(pairs):
    return [pair[field].casefold().strip() for pair in pairs for field in ("first", "second")]


def labels(pairs):
    return Counter((pair["kind"], pair["contradicts"]) for pair in pairs)


@pytest.mark.parametrize("part", PARTS)
def test_each_part_holds_at_least_220_pairs_of_two_memories_of_the_documented_fields(parts, part):
    assert len(parts[part]) >= 220
    for pair in parts[part]:
        assert list(pair) == ["id", "kind", "first", "second", "contradicts"], pair["id"]
        assert type(pair["contradicts"]) is bool, pair["id"]
        assert pair["first"].casefold() != pair["second"].casefold(), pair["id"]
        for field in ("first", "second"):
            assert 4 <= len(pair[field].split()) <= 40, pair["id"]


def test_ids_are_unique_over_all_parts(parts):
    ids = [pair["id"] for part in PARTS for pair in parts[part]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("part", PARTS)
def test_mixed_kinds_have_both_labels_and_hard_negatives_never_contradict(parts, part):
    expected = {(kind, label) for kind in MIXED for label in (True, False)}
    assert set(labels(parts[part])) == expected | {(kind, False) for kind in NEVER}


@pytest.mark.parametrize("part", PARTS)
def test_contradictions_are_40_to_55_percent(parts, part):
    share = sum(pair["contradicts"] for pair in parts[part]) / len(parts[part])
    assert 0.40 <= share <= 0.55


def test_no_text_is_used_twice_within_or_across_parts(parts, daily):
    every = [text for part in (*PARTS, *DAILY) for text in texts((parts | daily)[part])]
    assert [text for text, times in Counter(every).items() if times > 1] == []


README = [(PARTS, MIXED | NEVER), (DAILY, DAILY_KINDS)]


@pytest.mark.parametrize(("names", "kinds"), README, ids=["mixed", "daily"])
def test_the_readme_states_the_counts_of_the_files(parts, daily, names, kinds):
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| `(\w+)` \|.*" + r"\| (\d+) / (\d+) " * len(names) + r"\|", readme)
    stated = {kind: tuple(map(int, counts)) for kind, *counts in rows if kind in kinds}
    found = [labels((parts | daily)[part]) for part in names]
    assert stated == {
        kind: tuple(counts[kind, label] for counts in found for label in (True, False))
        for kind in kinds
    }


def test_daily_parts_have_topics_of_their_own_and_all_kinds_with_both_labels(daily):
    topics = [{pair["topic"] for pair in daily[part]} for part in DAILY]
    assert topics[0].isdisjoint(topics[1])
    for part in DAILY:
        assert len(daily[part]) >= 200
        counts = labels(daily[part])
        assert {kind for kind, _ in counts} == DAILY_KINDS
        assert all(counts[kind, label] >= 8 for kind in DAILY_KINDS for label in (True, False))
        assert len({pair["id"] for pair in daily[part]}) == len(daily[part])
        assert all(pair["first"] and pair["second"] for pair in daily[part])
