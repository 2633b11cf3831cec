"""The budget of a prompt block keeps the documented tests and the rulings about them."""

# ruff: noqa: RUF001 - texts in many scripts are the point

import pytest

from mnemic._core import estimate_tokens
from mnemic.context.budget import enforce_budget
from mnemic.context.prompt_block import format_for_system_prompt
from mnemic.errors import InvalidArgumentError
from tests.support.policy_twin import (
    BucketCounter,
    ByteCounter,
    PieceCounter,
    broken,
    copied,
    ids,
    made,
)

SCRIPTS = {
    "Latin": "The user moved to Lisbon in May and likes the old trams there. ",
    "Cyrillic": "Пользователь переехал в Москву и любит старые трамваи города. ",
    "Greek": "Ο χρήστης μετακόμισε στην Αθήνα και αγαπά τα παλιά τραμ. ",
    "Han": "用户五月搬到了里斯本，他很喜欢那里的老电车和旧书店。",
    "Japanese": "ユーザーは五月にリスボンへ引っ越して、古い路面電車が好きです。",
    "Korean": "사용자는 오월에 리스본으로 이사했고 오래된 전차를 좋아합니다. ",
    "Arabic": "انتقل المستخدم إلى لشبونة في مايو ويحب الترام القديم هناك. ",
    "Hebrew": "המשתמש עבר לליסבון במאי ואוהב את החשמליות הישנות שם. ",
    "Devanagari": "उपयोगकर्ता मई में लिस्बन चला गया और उसे पुरानी ट्राम पसंद हैं। ",
    "Thai": "ผู้ใช้ย้ายไปลิสบอนในเดือนพฤษภาคมและชอบรถรางเก่าที่นั่น ",
    "emoji": "👩‍👩‍👧‍👦🇵🇹👍🏽",
}
COUNTERS = [None, ByteCounter(), PieceCounter(), BucketCounter()]
COUNTER_NAMES = ["estimate", "bytes", "pieces", "buckets"]


def count(counter, text):
    return estimate_tokens(text) if counter is None else counter.count(text)


@pytest.mark.requirement("R295", "R322", "C041", "C043")
def test_the_token_budget_is_enforced_strictly():
    memories = [made(number, "a" * 10_000, score=1 - number / 20) for number in range(10)]
    found = enforce_budget(memories, 1500)
    assert 0 < estimate_tokens(format_for_system_prompt(found)) <= 1500
    assert sum(-(-len(memory.content) // 4) for memory in found) <= 1500


@pytest.mark.requirement("C041")
def test_the_budget_returns_new_objects_and_changes_none():
    memories = (made(1, "long " * 3000), made(2, "short"))
    copies = [copied(memory) for memory in memories]
    found = enforce_budget(memories, 200)
    assert list(memories) == copies
    assert found[0] is not memories[0]


@pytest.mark.requirement("R326", "C042", "C043")
@pytest.mark.parametrize("counter", COUNTERS, ids=COUNTER_NAMES)
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_limit_holds_for_the_rendered_block_in_each_script(script, counter):
    sizes = [1, 3, 40, 9, 200, 2, 30]
    memories = [
        made(
            number,
            SCRIPTS[script] * size,
            score=number / 10,
            type=("message", "fact", "summary")[number % 3],
            role="assistant",
        )
        for number, size in enumerate(sizes)
    ]
    for budget in (100, 257, 1500, 3000):
        found = enforce_budget(memories, budget, counter=counter)
        text = format_for_system_prompt(found)
        assert count(counter, text) <= budget
        assert broken(text, found) is None if found else text == ""
    assert found


@pytest.mark.requirement("C042")
def test_the_estimate_does_not_understate_a_script_by_times():
    assert estimate_tokens("漢" * 1500) == 1500
    assert estimate_tokens("ж" * 3000) == 1500
    assert estimate_tokens("a" * 6000) == 1500
    assert estimate_tokens("a" * 6001) == 1501


@pytest.mark.requirement("C043")
def test_headings_times_roles_labels_and_footer_count():
    messages = [made(number, "ok", type="message", role="assistant") for number in range(1000)]
    found = enforce_budget(messages, 500)
    text = format_for_system_prompt(found)
    assert estimate_tokens(text) <= 500
    assert sum(estimate_tokens(memory.content) for memory in found) < 100
    assert len(found) > 10


@pytest.mark.requirement("C043")
def test_a_budget_below_the_headings_gives_no_block():
    assert enforce_budget([made(1)], 5) == []


@pytest.mark.requirement("C044")
def test_a_memory_that_does_not_fit_blocks_no_smaller_one_after_it():
    first = made(1, "a" * 400, score=0.9)
    huge = made(2, "b" * 9000, score=0.8)
    small = made(3, "c", score=0.7)
    budget = estimate_tokens(format_for_system_prompt([first, small])) + 4  # each line rounds up
    assert ids(enforce_budget([first, huge, small], budget)) == ["0001", "0003"]


@pytest.mark.requirement("C037")
def test_a_recent_memory_of_a_low_score_pushes_out_no_better_one():
    best = made(1, "a" * 400, score=0.9)
    recent = made(2, "b" * 4000, score=0.1, minutes=9)
    second = made(3, "c" * 400, score=0.8)
    budget = estimate_tokens(format_for_system_prompt([best, second]))
    assert ids(enforce_budget([best, recent, second], budget)) == ["0001", "0003"]
    roomy = enforce_budget([best, recent, second], 3000)
    assert ids(roomy) == ["0001", "0002", "0003"]


@pytest.mark.requirement("R295")
@pytest.mark.parametrize("budget", [-1, True, 1.5, "9", None])
def test_a_budget_without_meaning_is_refused(budget):
    with pytest.raises((InvalidArgumentError, TypeError)):
        enforce_budget([made(1)], budget)
