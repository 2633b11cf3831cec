"""The summary that stands for the oldest items of a compacted window."""

import logging
from datetime import timedelta

import pytest

from mnemic.context import CompactionStrategy
from mnemic.errors import InvalidArgumentError
from tests.support.clock import NOON
from tests.support.windows import NOTE, SYSTEM, USER, Words, contents, opened, words

pytestmark = pytest.mark.requirement("C018", "C019", "C020", "C021", "C022", "C028", "C042", "C043")


def test_a_summary_stands_for_the_oldest_items():
    told = []

    def summarise(texts):
        told.append(list(texts))
        return "in short"

    window = opened(compaction_strategy=CompactionStrategy.SUMMARIZE, summarizer=summarise)
    window.add(words(10), SYSTEM)
    for number in range(7):
        window.add(words(10, f"w{number}"), USER, priority=40 + number)
    window.add(words(10, "new"), USER)
    assert told == [[words(10, f"w{number}") for number in range(3)]]
    (summary,) = window.items(NOTE)
    assert (summary.content, summary.priority) == ("in short", 42)
    assert summary.metadata == {"summary_of": 3}
    assert summary.added_at == NOON + timedelta(seconds=4)
    assert window.current_tokens == 10 + 2 + 50


def test_an_earlier_summary_goes_into_the_next():
    window = opened(
        compaction_strategy=CompactionStrategy.SUMMARIZE, summarizer=lambda texts: f"{len(texts)}!"
    )
    for number in range(30):
        window.add(words(10, f"w{number}"), USER)
        assert window.current_tokens <= 85
    assert len(window.items(NOTE)) == 1


def test_compact_returns_what_a_summary_replaced():
    window = opened(summarizer=lambda _: "in short")
    for number in range(6):
        window.add(words(10), USER, id=str(number))
    removed = window.compact(CompactionStrategy.SUMMARIZE, target_percent=50)
    assert [item.id for item in removed] == ["0", "1"]
    assert window.current_tokens == 42


def test_summarising_without_a_summariser_is_an_error_at_once():
    with pytest.raises(InvalidArgumentError, match="strategy summarize needs a summarizer"):
        opened(compaction_strategy=CompactionStrategy.SUMMARIZE)
    with pytest.raises(InvalidArgumentError, match="strategy summarize needs a summarizer"):
        opened().compact("summarize")


@pytest.mark.parametrize("answer", ["", " \n", None, 3])
def test_a_summariser_that_says_nothing_changes_nothing(answer):
    window = opened(summarizer=lambda _: answer)
    window.add(words(50), USER)
    with pytest.raises(InvalidArgumentError, match="summarizer must return a text"):
        window.compact("summarize", target_percent=10)
    assert window.current_tokens == 50


def test_a_summariser_that_fails_changes_nothing():
    def fail(texts):
        raise RuntimeError(f"no answer to {len(texts)}")

    window = opened(summarizer=fail, compaction_strategy="summarize")
    window.add(words(80), USER)
    with pytest.raises(RuntimeError, match="no answer to 1"):
        window.add(words(10), USER)
    assert window.current_tokens == 80


def test_a_summary_too_long_for_its_space_makes_more_go_or_is_left_out(caplog):
    window = opened(summarizer=lambda _: words(30, "long"))
    for number in range(8):
        window.add(words(10), USER, id=str(number))
    window.compact("summarize", target_percent=50)
    assert [item.id for item in window.items(USER)] == ["6", "7"]
    assert window.current_tokens == 50
    with caplog.at_level(logging.WARNING, "mnemic.context"):
        window.compact("summarize", target_percent=20)
    assert caplog.messages == ["Summary left out for agent default: 30 tokens do not fit"]
    assert window.current_tokens <= 20


def test_no_lock_is_held_while_the_summariser_or_the_counter_runs():
    window = None

    class Asking(Words):
        def count(self, text, /):
            assert window is None or window.items() is not None
            return super().count(text)

    def summarise(texts):
        assert len(window.items()) == len(texts)
        return "in short"

    window = opened(counter=Asking(), summarizer=summarise)
    window.add(words(50), USER)
    window.compact("summarize", target_percent=10)
    assert contents(window.items()) == ["in short"]


def test_what_was_removed_while_it_was_summarised_is_in_no_summary():
    told = []

    def summarise(texts):
        told.append(len(texts))
        if len(told) == 1:
            window.remove("secret")
        return " ".join(text.split()[0] for text in texts)

    window = opened(summarizer=summarise)
    window.add(words(10, "secret"), USER, id="secret")
    window.add(words(10, "one"), USER)
    window.add(words(10, "two"), USER)
    window.add(words(40), USER)
    window.compact("summarize", target_percent=50)
    assert told == [3, 2]
    assert contents(window.items()) == ["one two", words(40)]
