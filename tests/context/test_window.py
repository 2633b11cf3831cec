"""The context window."""

import json
import logging
import pickle
import sys
import threading
from datetime import UTC, timedelta

import mnemic_minilm
import msgspec
import pytest
import tokenizers

import mnemic
from mnemic import _core
from mnemic.context import (
    AddOutcome,
    BuildContextOptions,
    CompactionStrategy,
    ContextItem,
    ContextItemType,
    ContextSnapshot,
    ContextWindow,
    EstimatedTokens,
    TokenizerTokens,
)
from mnemic.errors import (
    ContextWindowFullError,
    ContextWindowFullException,
    InvalidArgumentError,
    LicenseRestrictionError,
    MissingExtraError,
    UnknownIdError,
)
from mnemic.licensing import DocumentedLicenses, LicenseTier
from tests.support.clock import NOON, SECOND, Clock

pytestmark = pytest.mark.requirement("C018", "C019", "C020", "C021", "C022", "C028", "C042", "C043")

SYSTEM = ContextItemType.SYSTEM_PROMPT
INSTRUCTION = ContextItemType.INSTRUCTION
DOCUMENT = ContextItemType.RETRIEVED_DOCUMENT
NOTE = ContextItemType.WORKING_MEMORY
TOOL = ContextItemType.TOOL_RESULT
USER = ContextItemType.USER_MESSAGE
ASSISTANT = ContextItemType.ASSISTANT_MESSAGE
OTHER = ContextItemType.OTHER


class Words:
    """Counts words, so that tests can say how long a text is."""

    def count(self, text, /):
        return len(text.split())


def opened(max_tokens=100, **options):
    return ContextWindow(max_tokens, **{"counter": Words(), "clock": Clock(step=SECOND), **options})


def words(number, word="word"):
    return " ".join([word] * number)


def contents(items):
    return [item.content for item in items]


def document(content, ref=None, priority=50, **fields):
    return ContextItem(content=content, type=DOCUMENT, source_ref=ref, priority=priority, **fields)


# Token counters


def test_the_estimate_counts_by_script_and_rounds_up():
    estimate = _core.estimate_tokens
    assert [estimate(text) for text in ("", "a", "tea for two", "чай", "茶を飲む", "🍵")] == [
        0, 1, 3, 2, 4, 2,
    ]  # fmt: skip
    assert _core.estimate_tokens_of(["tea for two", "", "茶"]) == [3, 0, 1]
    assert EstimatedTokens().count("tea for two") == 3


def test_chinese_is_not_estimated_at_a_quarter_of_what_it_takes():
    assert ContextWindow(1000).add("明日は東京で会議があります。", USER).token_count == 14


@pytest.mark.parametrize("wrong", [3, None, b"tea"])
def test_only_text_can_be_estimated(wrong):
    with pytest.raises(TypeError):
        _core.estimate_tokens(wrong)
    with pytest.raises(TypeError):
        _core.estimate_tokens_of([wrong])


def test_text_that_is_no_unicode_is_refused_by_place():
    with pytest.raises(InvalidArgumentError, match="text has a lone surrogate at position 1"):
        _core.estimate_tokens("a\ud800")
    with pytest.raises(InvalidArgumentError, match=r"texts\[1\] has a lone surrogate"):
        _core.estimate_tokens_of(["a", "\ud800"])
    with pytest.raises(TypeError, match="not one str"):
        _core.estimate_tokens_of("abc")


def test_long_texts_are_estimated_while_other_threads_run():
    text = "東京" * 4_000_000
    ticks, done = 0, threading.Event()
    threads = [
        threading.Thread(target=lambda: (_core.estimate_tokens(text), done.set())),
    ]
    threads[0].start()
    while not done.is_set():
        ticks += 1
    threads[0].join()
    assert ticks > 1


def test_a_tokenizer_of_ones_own_counts_without_special_tokens_or_truncation():
    counter = TokenizerTokens.from_file(mnemic_minilm.tokenizer_path())
    assert counter.count("") == 0
    assert counter.count("the ferry leaves") == 3
    assert counter.count(words(1000, "ferry")) == 1000
    window = ContextWindow(100, counter=counter)
    assert window.add("the ferry leaves", USER).token_count == 3


def test_the_tokenizer_that_is_given_stays_as_it_was():
    tokenizer = tokenizers.Tokenizer.from_file(str(mnemic_minilm.tokenizer_path()))
    tokenizer.no_padding()
    tokenizer.enable_truncation(4)
    assert TokenizerTokens(tokenizer).count(words(50, "ferry")) == 50
    assert len(tokenizer.encode(words(50, "ferry")).ids) == 4


def test_counting_with_a_tokenizer_names_the_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'mnemic\[tokens\]'"):
        TokenizerTokens.from_file("tokenizer.json")
    assert ContextWindow(100).add("tea for two", USER).token_count == 3


def test_what_is_no_tokenizer_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"must be a tokenizers\.Tokenizer, got Words"):
        TokenizerTokens(Words())
    broken = tmp_path / "tokenizer.json"
    broken.write_text("{}")
    with pytest.raises(InvalidArgumentError, match=r"tokenizer\.json is no tokenizer file"):
        TokenizerTokens.from_file(broken)


def test_a_counter_that_answers_nonsense_is_named():
    class Broken:
        def count(self, text, /):
            return -len(text)

    with pytest.raises(InvalidArgumentError, match="the counter's answer must be at least 0"):
        ContextWindow(100, counter=Broken()).add("tea", USER)


def test_a_counter_that_is_empty_still_counts():
    class Remembering(dict):
        def count(self, text, /):
            return self.setdefault(text, len(text))

    window = ContextWindow(100, counter=Remembering())
    assert window.add("seven tea", USER).token_count == 9


# Items


def test_an_item_has_the_documented_defaults():
    item = ContextItem(content="tea", type=USER)
    assert (item.priority, item.token_count, item.pinned) == (50, 0, False)
    assert (item.source_ref, item.role, item.metadata) == (None, None, {})
    assert {kind.name: kind.value for kind in ContextItemType} == {
        "SYSTEM_PROMPT": 0,
        "INSTRUCTION": 1,
        "RETRIEVED_DOCUMENT": 2,
        "WORKING_MEMORY": 3,
        "TOOL_RESULT": 4,
        "USER_MESSAGE": 5,
        "ASSISTANT_MESSAGE": 6,
        "OTHER": 99,
    }
    assert [strategy.name for strategy in CompactionStrategy] == [
        "REMOVE_OLDEST", "REMOVE_LOW_PRIORITY", "SUMMARIZE", "SELECTIVE",
    ]  # fmt: skip


def test_types_are_known_by_number_and_by_name():
    for given in (99, "other", "OTHER", OTHER):
        assert ContextItem(content="tea", type=given).type is OTHER
    assert ContextItem(content="tea", type=5).type is USER


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": " "}, "content cannot be empty"),
        ({"content": None}, "content must be a str, got NoneType"),
        ({"type": 7}, "type 7 is unknown; it is one of system_prompt, instruction"),
        ({"type": True}, "type True is unknown"),
        ({"type": "letter"}, "type 'letter' is unknown"),
        ({"id": "a\n"}, "id holds a control character"),
        ({"priority": 101}, "priority must be from 0 to 100, got 101"),
        ({"priority": -1}, "priority must be at least 0"),
        ({"priority": 50.0}, "priority must be an int, got float"),
        ({"token_count": -1}, "token_count must be at least 0"),
        ({"pinned": 1}, "pinned must be True or False, got 1"),
        ({"added_at": "noon"}, "added_at must be a datetime, got str"),
        ({"source_ref": ""}, "source_ref cannot be empty"),
        ({"role": 3}, "role must be a str, got int"),
        ({"metadata": [1]}, "metadata must be a dict, got list"),
        ({"metadata": {"a": object()}}, r"metadata\['a'\] is a object"),
    ],
)
def test_an_item_says_which_field_is_wrong_and_what_was_wanted(fields, message):
    with pytest.raises(InvalidArgumentError, match=message):
        ContextItem(**{"content": "tea", "type": USER, **fields})


# Adding


def test_add_returns_the_stored_item_with_its_token_count():
    window = opened()
    given = ContextItem(content="tea for two", type=USER)
    stored = window.add(given)
    assert (stored.token_count, stored.added_at) == (3, NOON + timedelta(seconds=1))
    assert stored.id
    assert given.token_count == 0
    assert window.items() == [stored]
    assert window.get(stored.id) == stored
    assert window.current_tokens == 3


def test_what_an_item_brings_along_is_kept():
    window = opened()
    brought = ContextItem(
        content="tea", type=TOOL, id="call-7", token_count=9, added_at=NOON, pinned=True,
        priority=3, source_ref="s", role="tool", metadata={"a": [1]},
    )  # fmt: skip
    assert window.add(brought) == brought
    assert window.current_tokens == 9


def test_a_content_can_be_added_with_its_type_and_fields():
    window = opened()
    item = window.add("tea for two", USER, priority=80, source_ref="m1", pinned=True)
    assert (item.type, item.priority, item.source_ref, item.pinned) == (USER, 80, "m1", True)


def test_the_arguments_of_add_go_together():
    window = opened()
    with pytest.raises(InvalidArgumentError, match="type must be named with a content"):
        window.add("tea")
    item = ContextItem(content="tea", type=USER)
    with pytest.raises(InvalidArgumentError, match="type, priority must be in the item"):
        window.add(item, USER, priority=3)
    with pytest.raises(InvalidArgumentError, match="item must be a ContextItem or a str, got 3"):
        window.add(3)
    assert len(window) == 0


def test_an_id_is_in_a_window_once():
    window = opened()
    window.add("tea", USER, id="a")
    with pytest.raises(InvalidArgumentError, match="id 'a' is in the window already"):
        window.add("coffee", USER, id="a")
    assert contents(window.items()) == ["tea"]


def test_add_many_counts_what_it_added_and_leaves_out_what_does_not_fit():
    window = opened(10)
    window.add(words(4), SYSTEM)
    batch = [ContextItem(content=words(n), type=USER, pinned=True) for n in (7, 2, 8, 3)]
    assert window.add_many(batch) == 2
    assert [item.token_count for item in window.pinned_items()] == [2, 3]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (["tea"], r"items\[0\] must be a ContextItem, got a str of 3 characters"),
        ("tea", "items must be a list, got a str of 3 characters"),
        ([ContextItem(content="x", type=USER, id="a")] * 2, "id 'a' is in the window already"),
        ([ContextItem(content="x", type=USER, id="here")], "id 'here' is in the window already"),
    ],
)
def test_add_many_adds_nothing_if_one_cannot_be_used(batch, message):
    window = opened()
    window.add("tea", USER, id="here")
    with pytest.raises(InvalidArgumentError, match=message):
        window.add_many(batch)
    assert len(window) == 1


# Order


def test_items_stand_by_type_then_priority_then_age():
    window = opened(1000, compaction_threshold=100)
    for kind in (OTHER, ASSISTANT, USER, TOOL, NOTE, DOCUMENT, INSTRUCTION, SYSTEM):
        for priority in (20, 80, 80):
            window.add(f"{kind.name} {priority} {len(window)}", kind, priority=priority)
    items = window.items()
    assert [item.type for item in items] == [kind for kind in ContextItemType for _ in range(3)]
    for at in range(0, len(items), 3):
        assert [item.priority for item in items[at : at + 3]] == [80, 80, 20]
        assert items[at].added_at < items[at + 1].added_at
    assert window.items(NOTE) == [item for item in items if item.type is NOTE]


def test_equal_items_stand_side_by_side_in_the_order_they_were_added():
    window = opened(clock=lambda: NOON)
    for letter in "zkabq":
        window.add(letter, USER)
    assert contents(window.items()) == list("zkabq")
    window.pin(window.items()[1].id)
    window.update_priority(window.items()[3].id, 50)
    assert contents(window.items()) == list("zkabq")


# Compaction


def test_nothing_is_removed_up_to_the_threshold():
    window = opened()
    window.add(words(50), USER)
    window.add(words(35), USER)
    assert (window.item_count, window.current_tokens, window.usage_percent) == (2, 85, 85.0)
    assert window.stats().compactions == 0


def test_passing_the_threshold_compacts_to_fifteen_points_below_it():
    window = opened()
    for number in range(8):
        window.add(words(10), USER, priority=number, id=str(number))
    window.add(words(6), USER, priority=0, id="new")
    assert [item.id for item in window.items()] == ["7", "6", "5", "4", "3", "2", "1", "new"]
    assert window.current_tokens == 76
    assert window.stats().compactions == 1
    assert window.stats().items_compacted == 1


def test_no_more_is_left_than_a_large_item_needs():
    window = opened()
    for number in range(8):
        window.add(words(10), USER, id=str(number))
    window.add(words(60), USER, id="large")
    assert [item.id for item in window.items()] == ["4", "5", "6", "7", "large"]


def test_low_priority_goes_first_and_of_that_the_oldest():
    window = opened()
    for name, priority in (("a", 90), ("b", 10), ("c", 50), ("d", 10), ("e", 50)):
        window.add(words(10), USER, id=name, priority=priority)
    removed = window.compact(target_percent=15)
    assert [item.id for item in removed] == ["b", "d", "c", "e"]


def test_the_oldest_goes_first_whatever_its_type_and_priority():
    window = opened(compaction_strategy=CompactionStrategy.REMOVE_OLDEST)
    for at, kind in enumerate((USER, DOCUMENT, INSTRUCTION, ASSISTANT)):
        window.add(
            words(10), kind, id=str(at), priority=100 - at, added_at=NOON - at * timedelta(1)
        )
    removed = window.compact(target_percent=15)
    assert [item.id for item in removed] == ["3", "2", "1"]


def test_pinned_items_and_the_system_prompt_are_never_compacted():
    for strategy in ("remove_oldest", "remove_low_priority", "selective"):
        window = opened(compaction_strategy=strategy)
        window.add(words(20), SYSTEM, priority=0)
        window.add(words(20), DOCUMENT, priority=0, pinned=True)
        window.add(words(20), USER, priority=100)
        assert len(window.compact(target_percent=0)) == 1
        assert [item.type for item in window.items()] == [SYSTEM, DOCUMENT]


def test_an_unpinned_item_may_go_again():
    window = opened()
    item = window.add("tea", USER, pinned=True)
    assert window.pinned_items() == [item]
    assert window.unpin(item.id).pinned is False
    assert window.compact(target_percent=0) != []
    assert window.pinned_items() == []


def test_a_window_that_is_full_says_so_and_keeps_what_it_has(caplog):
    window = opened(agent_id="aide")
    window.add(words(60), SYSTEM)
    window.add(words(20), USER)
    with (
        caplog.at_level(logging.WARNING, "mnemic.context"),
        pytest.raises(ContextWindowFullError) as caught,
    ):
        window.add(words(41), USER)
    error = caught.value
    assert (error.current_tokens, error.max_tokens, error.requested_tokens) == (80, 100, 41)
    assert caplog.messages == [
        "Context window full for agent aide: current=80, max=100, requested=41"
    ]
    assert window.current_tokens == 80
    assert pickle.loads(pickle.dumps(error)).requested_tokens == 41  # noqa: S301
    assert ContextWindowFullException is ContextWindowFullError


def test_what_fits_beside_what_must_stay_always_fits():
    window = opened()
    window.add(words(60), SYSTEM)
    window.add(words(20), USER)
    window.add(words(40), USER)
    assert window.current_tokens == 100


def test_the_thousand_and_first_item_makes_one_go():
    window = opened(10**6)
    for number in range(1000):
        window.add("tea", USER, id=str(number))
    window.add("tea", USER, id="last")
    assert window.item_count == 1000
    assert window.get("0") is None
    assert not window.try_add(document("coffee"))
    assert window.get("1") is not None


def test_a_thousand_pinned_items_leave_no_room():
    window = opened(10**6)
    assert window.add_many(ContextItem(content="x", type=USER, pinned=True) for _ in range(1000))
    with pytest.raises(ContextWindowFullError, match="1000 of 1000000 tokens") as caught:
        window.add("tea", USER)
    assert caught.value.__notes__ == ["it holds 1000 items that must stay, the most it may"]


def test_compaction_takes_a_target_and_a_strategy():
    window = opened()
    for number in range(8):
        window.add(words(10), USER, id=str(number), priority=100 - number)
    assert [item.id for item in window.compact()] == ["7"]
    assert [item.id for item in window.compact("remove_oldest", target_percent=60)] == ["0"]
    assert window.compact() == []
    for wrong in (-1, 101, 70.0):
        with pytest.raises(InvalidArgumentError, match="target_percent must be"):
            window.compact(target_percent=wrong)
    with pytest.raises(InvalidArgumentError, match="strategy 'all' is unknown"):
        window.compact("all")


@pytest.mark.parametrize("strategy", [CompactionStrategy.SUMMARIZE, CompactionStrategy.SELECTIVE])
def test_advanced_strategies_need_the_tier_teams(strategy):
    options = {"license": DocumentedLicenses(LicenseTier.WRITER_PRO), "summarizer": " ".join}
    with pytest.raises(LicenseRestrictionError, match="requires a Teams license") as caught:
        opened(compaction_strategy=strategy, **options)
    assert caught.value.feature_key == "Agents.Memory.ContextWindow.Advanced"
    assert caught.value.required_tier == "Teams"
    with pytest.raises(LicenseRestrictionError):
        opened(**options).compact(strategy)
    opened(
        compaction_strategy=strategy,
        license=DocumentedLicenses(LicenseTier.TEAMS),
        summarizer=" ".join,
    )


def test_the_simple_strategies_are_in_every_tier():
    window = opened(license=DocumentedLicenses(LicenseTier.CORE))
    window.add("tea", USER)
    assert len(window.compact("remove_oldest", target_percent=0)) == 1


# Summaries


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


def test_a_summary_too_long_for_its_room_makes_more_go_or_is_left_out(caplog):
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


# Selective compaction


def selected(*items):
    window = opened(10**6, compaction_strategy=CompactionStrategy.SELECTIVE)
    for item in items:
        window.add(item)
    return [item.id for item in window.compact(target_percent=0)]


def test_selective_compaction_begins_with_what_is_said_twice():
    order = selected(
        ContextItem(content="The ferry leaves at ten past every hour", type=USER, id="old"),
        ContextItem(content="An unrelated remark", type=TOOL, id="tool", priority=0),
        ContextItem(content="The ferry leaves  at ten past every hour!", type=USER, id="new"),
    )
    assert order == ["old", "tool", "new"]


def test_of_two_that_say_the_same_the_weightier_and_pinned_one_stays():
    said = "The ferry leaves at ten past every hour"
    order = selected(
        ContextItem(content=said, type=USER, id="high", priority=60),
        ContextItem(content=said, type=USER, id="low", priority=40),
        ContextItem(content="Tea is in the kitchen", type=USER, id="one", priority=99),
        ContextItem(content="Tea is in the kitchen", type=NOTE, id="pinned", pinned=True),
    )
    assert sorted(order[:2]) == ["low", "one"]
    assert order[2:] == ["high"]


def test_of_several_that_say_the_same_the_least_goes_first_and_pinned_ones_never():
    said = "The ferry leaves at ten past every hour"
    for pinned, gone in ((False, ["10", "40", "else", "90"]), (True, ["else"])):
        same = (
            ContextItem(content=said, type=USER, id=str(at), priority=at, pinned=pinned)
            for at in (40, 90, 10)
        )
        assert selected(*same, document("Something else", id="else")) == gone


def test_texts_that_differ_in_a_number_do_not_say_the_same():
    tool = ContextItem(content="An unrelated remark", type=TOOL, id="tool")
    for second, order in (("10:45", ["tool", "first", "second"]), ("10:05", ["first", "tool"])):
        said = "The ferry to the island leaves from the pier of the old harbour at"
        first = document(f"{said} 10:05", id="first")
        assert (
            selected(first, tool, document(f"{said} {second}", id="second"))[: len(order)] == order
        )


def test_the_rest_goes_by_type_then_by_priority_for_each_token():
    order = selected(
        ContextItem(content="an instruction", type=INSTRUCTION, id="instruction"),
        ContextItem(content="a question", type=USER, id="question"),
        ContextItem(content="an answer", type=ASSISTANT, id="answer"),
        ContextItem(content="some note", type=NOTE, id="note"),
        ContextItem(content="whatever else", type=OTHER, id="other"),
        document("four words of weight", id="heavy", priority=80),
        document("two words", id="light", priority=50),
        ContextItem(content="a tool says", type=TOOL, id="tool"),
    )
    assert order == [
        "tool", "heavy", "light", "other", "note", "answer", "question", "instruction",
    ]  # fmt: skip


def test_near_duplicates_are_those_a_plain_comparison_of_all_pairs_finds():
    from mnemic.context.eviction_order import NEAR_DUPLICATE, _near_duplicates  # noqa: PLC0415

    base = "the quick brown fox jumps over the lazy dog while rain falls on the quiet harbour town"
    texts = [base[:cut] + tail for cut in range(60, len(base), 2) for tail in ("", " x", " 4")]
    items = [ContextItem(content=text, type=USER, id=str(at)) for at, text in enumerate(texts)]

    def grams(text):
        return {text[at : at + 3] for at in range(len(text) - 2)}

    kept, expected = [], []
    for item in items:
        mine, digits = grams(item.content), "4" in item.content
        is_near = any(
            len(mine & grams(other)) >= NEAR_DUPLICATE * len(mine | grams(other))
            and digits == ("4" in other)
            for other in kept
        )
        (expected if is_near else kept).append(item.content)
    assert contents(_near_duplicates(items)) == expected
    assert len(kept) > 5
    assert len(expected) > 5


# Augmentation from free tokens


def test_try_add_uses_free_tokens_only_and_never_removes():
    window = opened()
    window.add(words(60), USER, priority=0)
    assert window.free_tokens == 25
    assert window.try_add(document(words(25), "m1", priority=90))
    assert (window.free_tokens, window.available_tokens) == (0, 15)
    refused = window.try_add(document("x", "m2", priority=100))
    assert not refused
    assert (refused.outcome, refused.item, refused.tokens_added) == (AddOutcome.NO_ROOM, None, 0)
    assert window.item_count == 2
    assert window.stats().compactions == 0


def test_with_500_tokens_available_only_the_fitting_of_ten_memories_are_added():
    window = opened(1000, compaction_threshold=100)
    window.add(words(500), USER)
    sizes = [200, 400, 150, 180, 90, 70, 60, 50, 10, 5]
    results = [window.try_add(document(words(n), f"m{n}")) for n in sizes]
    assert [n for n, result in zip(sizes, results, strict=True) if result] == [200, 150, 90, 60]
    assert sum(result.tokens_added for result in results) == 500
    assert window.current_tokens == 1000


def test_a_memory_is_not_added_twice():
    window = opened()
    first = window.try_add(document("tea", "m1", priority=60))
    again = window.try_add(document("tea again", "m1", priority=60))
    assert (first.outcome, again.outcome) == (AddOutcome.ADDED, AddOutcome.PRESENT)
    assert again.item == first.item
    assert again.tokens_added == 0
    assert contents(window.items()) == ["tea"]


def test_a_memory_that_matters_more_now_gets_the_higher_priority():
    window = opened()
    window.try_add(document("tea", "m1", priority=60))
    assert window.try_add(document("tea", "m1", priority=70)).outcome is AddOutcome.REFRESHED
    lower = window.try_add(document("tea", "m1", priority=55))
    assert (lower.outcome, lower.item.priority) == (AddOutcome.PRESENT, 70)
    assert [item.priority for item in window.items()] == [70]


def test_a_known_memory_is_refreshed_even_in_a_full_window_and_without_counting():
    counted = []

    class Counting(Words):
        def count(self, text, /):
            counted.append(text)
            return super().count(text)

    window = opened(counter=Counting())
    window.add(words(85), DOCUMENT, source_ref="m1")
    assert window.try_add(document("tea", "m1", priority=90)).outcome is AddOutcome.REFRESHED
    assert counted == [words(85)]


def test_of_several_items_of_one_source_the_first_in_order_is_refreshed():
    window = opened()
    window.add("part one", DOCUMENT, source_ref="m", priority=20)
    window.add("part two", DOCUMENT, source_ref="m", priority=30)
    assert window.try_add(document("x", "m", priority=40)).item.content == "part two"
    assert [item.priority for item in window.items()] == [40, 20]


def test_a_source_that_was_removed_may_come_again():
    window = opened()
    item = window.try_add(document("tea", "m1")).item
    assert window.remove(item.id)
    assert window.try_add(document("tea", "m1"))
    window.clear()
    assert window.try_add(document("tea", "m1"))


def test_an_id_that_is_there_counts_as_present():
    window = opened()
    window.add("tea", USER, id="a")
    assert window.try_add("coffee", USER, id="a").outcome is AddOutcome.PRESENT


def test_what_try_add_took_never_makes_the_next_add_fail():
    window = opened()
    window.add(words(30), SYSTEM)
    for number in range(20):
        window.try_add(document(words(5), f"m{number}", priority=90))
    window.add(words(50), USER)
    assert window.current_tokens <= 100


# Changing


def test_priority_can_be_changed_from_0_to_100():
    window = opened()
    item = window.add("tea", USER)
    assert window.update_priority(item.id, 100).priority == 100
    assert window.get(item.id).priority == 100
    for wrong in (-1, 101, "high", 1.5):
        with pytest.raises(InvalidArgumentError, match="priority must be"):
            window.update_priority(item.id, wrong)


def test_an_unknown_id_is_told():
    window = opened()
    assert window.remove("nobody") is False
    assert window.get("nobody") is None
    for change in (window.pin, window.unpin, lambda name: window.update_priority(name, 3)):
        with pytest.raises(UnknownIdError, match="no item 'nobody' is in the window of 'default'"):
            change("nobody")


def test_clear_leaves_pinned_items_unless_told_otherwise():
    window = opened()
    window.add("prompt", SYSTEM)
    window.add("pinned", USER, pinned=True)
    window.add("tea", USER)
    assert window.clear() == 2
    assert contents(window.items()) == ["pinned"]
    assert window.current_tokens == 1
    assert window.clear(include_pinned=True) == 1
    assert (window.current_tokens, window.item_count) == (0, 0)


def test_an_empty_window_is_still_a_window():
    assert opened()
    assert len(opened()) == 0


# Building


def test_build_joins_contents_in_order_and_counts_what_it_joined():
    window = opened(1000)
    window.add("hello", USER)
    window.add("be kind", SYSTEM)
    window.add("a memory", DOCUMENT)
    context = window.build()
    assert str(context) == context.text == "be kind\n\n---\n\na memory\n\n---\n\nhello"
    assert context.token_count == 7
    assert contents(context.items) == ["be kind", "a memory", "hello"]
    assert context.left_out == ()
    assert context.budget == 750


def test_the_conversation_is_built_as_it_went():
    window = opened(1000)
    for number in range(3):
        window.add(f"question {number}", USER, priority=number)
        window.add(f"answer {number}", ASSISTANT)
    window.add("a memory", DOCUMENT)
    window.add("else", OTHER)
    assert contents(window.build().items) == [
        "a memory", "question 0", "answer 0", "question 1", "answer 1", "question 2", "answer 2",
        "else",
    ]  # fmt: skip


def test_only_the_newest_turns_are_built():
    window = opened(1000)
    window.add("pinned turn", USER, pinned=True)
    for number in range(12):
        window.add(f"turn {number}", USER if number % 2 == 0 else ASSISTANT, priority=100 - number)
    context = window.build()
    assert contents(context.items) == ["pinned turn", *(f"turn {n}" for n in range(2, 12))]
    assert sorted(contents(context.left_out)) == ["turn 0", "turn 1"]
    newest = window.build(BuildContextOptions(max_history=1))
    assert contents(newest.items) == ["pinned turn", "turn 11"]


def test_the_reserve_stays_free_and_what_is_smaller_is_still_built():
    window = opened(100, compaction_threshold=100)
    window.add(words(10, "prompt"), SYSTEM)
    window.add(words(20, "rule"), INSTRUCTION, priority=0)
    window.add(words(30, "high"), DOCUMENT, priority=90)
    window.add(words(25, "low"), DOCUMENT, priority=10)
    window.add(words(5, "small"), DOCUMENT, priority=5)
    context = window.build(BuildContextOptions(reserve_tokens=31, separator=" "))
    assert contents(context.items) == [
        words(10, "prompt"), words(20, "rule"), words(30, "high"), words(5, "small"),
    ]  # fmt: skip
    assert contents(context.left_out) == [words(25, "low")]
    assert (context.token_count, context.budget) == (65, 69)


def test_separators_count():
    window = opened(20, compaction_threshold=100)
    for number in range(10):
        window.add(f"a{number} b", DOCUMENT)
    context = window.build(BuildContextOptions(reserve_tokens=2))
    assert context.token_count == Words().count(context.text) == 17
    assert len(context.items) == 6
    assert contents(context.left_out) == [f"a{number} b" for number in range(4)]


def test_what_fits_only_without_its_separator_is_passed_over_for_something_smaller():
    window = opened(100)
    for size, priority in ((5, 90), (5, 80), (4, 70)):
        window.add(words(size), DOCUMENT, priority=priority)
    context = window.build(BuildContextOptions(reserve_tokens=90))
    assert [item.token_count for item in context.items] == [5, 4]
    assert context.token_count == context.budget == 10


def test_a_text_that_takes_more_than_its_parts_is_cut_until_it_fits():
    class Growing(Words):
        def count(self, text, /):
            return 2 * super().count(text) if len(text.split()) > 3 else super().count(text)

    window = opened(12, counter=Growing())
    for number in range(4):
        window.add(f"a{number}", USER)
    context = window.build(BuildContextOptions(reserve_tokens=5, separator=" "))
    assert contents(context.items) == ["a1", "a2", "a3"]
    assert context.token_count == 3


def test_pinned_items_and_the_prompt_are_built_even_into_the_reserve():
    window = opened(100, compaction_threshold=100)
    window.add(words(50), SYSTEM)
    window.add(words(40), USER, pinned=True)
    window.add("tea", USER)
    context = window.build(BuildContextOptions(reserve_tokens=50))
    assert [item.token_count for item in context.items] == [50, 40]
    assert context.token_count > context.budget


def test_only_the_types_asked_for_are_built():
    window = opened(1000)
    window.add("hello", USER)
    window.add("a memory", DOCUMENT)
    assert str(window.build(BuildContextOptions(types=("retrieved_document",)))) == "a memory"
    assert str(window.build(BuildContextOptions(types=()))) == ""


def test_the_reserve_is_1000_tokens_but_at_most_a_quarter_of_the_window():
    assert [BuildContextOptions().budget(n) for n in (1, 100, 4000, 8000)] == [1, 75, 3000, 7000]
    assert BuildContextOptions(reserve_tokens=0).budget(100) == 100
    window = opened(100)
    with pytest.raises(InvalidArgumentError, match="less than the window's 100, got 100"):
        window.build(BuildContextOptions(reserve_tokens=100))
    for wrong in ({"reserve_tokens": 1}, {}):
        with pytest.raises(InvalidArgumentError, match="options must be BuildContextOptions"):
            window.build(wrong)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_history": -1}, "max_history must be at least 0"),
        ({"separator": None}, "separator must be a str, got NoneType"),
        ({"reserve_tokens": -5}, "reserve_tokens must be at least 0"),
        ({"types": "user_message"}, "types must be a list"),
        ({"types": ["letter"]}, "type 'letter' is unknown"),
    ],
)
def test_options_say_which_field_is_wrong(fields, message):
    with pytest.raises(InvalidArgumentError, match=message):
        BuildContextOptions(**fields)


def test_messages_have_roles_and_only_prompt_and_instructions_speak_as_the_system():
    window = opened(1000)
    for kind in ContextItemType:
        window.add(kind.name, kind)
    window.add("result", OTHER, role="tool")
    assert window.build_structured() == [
        {"role": "system", "content": "SYSTEM_PROMPT"},
        {"role": "system", "content": "INSTRUCTION"},
        {"role": "user", "content": "RETRIEVED_DOCUMENT"},
        {"role": "user", "content": "WORKING_MEMORY"},
        {"role": "user", "content": "TOOL_RESULT"},
        {"role": "user", "content": "USER_MESSAGE"},
        {"role": "assistant", "content": "ASSISTANT_MESSAGE"},
        {"role": "user", "content": "OTHER"},
        {"role": "tool", "content": "result"},
    ]
    assert window.build_structured(BuildContextOptions(types=(USER,))) == [
        {"role": "user", "content": "USER_MESSAGE"}
    ]


# Snapshots and statistics


def test_a_snapshot_brings_everything_back_also_through_json():
    window = opened(clock=lambda: NOON)
    for letter in "zka":
        window.add(letter, USER, source_ref=letter, metadata={"of": [1, letter]})
    window.add("pinned", DOCUMENT, pinned=True, priority=9)
    taken = window.snapshot()
    before = window.items()
    assert (taken.agent_id, taken.max_tokens, taken.token_count) == ("default", 100, 4)
    window.clear(include_pinned=True)
    window.add("something else", USER)
    kept = msgspec.json.decode(msgspec.json.encode(taken), type=ContextSnapshot)
    assert kept == taken
    window.restore(kept)
    assert window.items() == before
    assert window.current_tokens == 4
    assert window.try_add(document("k", "k")).outcome is AddOutcome.PRESENT


def test_a_snapshot_is_restored_for_its_agent_alone():
    taken = opened(agent_id="aide").snapshot()
    window = opened(agent_id="other")
    window.add("tea", USER)
    with pytest.raises(InvalidArgumentError, match="of agent 'aide', the window of 'other'"):
        window.restore(taken)
    with pytest.raises(InvalidArgumentError, match="must be a ContextSnapshot"):
        window.restore(None)
    assert contents(window.items()) == ["tea"]


def test_a_snapshot_that_does_not_fit_changes_nothing():
    large = opened(200)
    large.add(words(120), USER)
    window = opened(100)
    window.add("tea", USER)
    with pytest.raises(ContextWindowFullError):
        window.restore(large.snapshot())
    taken = window.snapshot()
    many = tuple(ContextItem(content="x", type=USER, id=str(n), added_at=NOON) for n in range(1001))
    with pytest.raises(InvalidArgumentError, match="at most 1000 items, got 1001"):
        window.restore(msgspec.structs.replace(taken, items=many))
    assert contents(window.items()) == ["tea"]


def test_a_damaged_snapshot_is_refused_where_it_is_read():
    window = opened()
    window.add("tea", USER, id="a")
    plain = json.loads(msgspec.json.encode(window.snapshot()))
    for damage in (
        {"items": plain["items"] * 2},
        {"items": [{**plain["items"][0], "id": ""}]},
        {"items": [{**plain["items"][0], "priority": 500}]},
        {"items": [{**plain["items"][0], "added_at": None}]},
        {"agent_id": ""},
        {"max_tokens": 0},
    ):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(json.dumps({**plain, **damage}), type=ContextSnapshot)


def test_statistics_tell_what_is_held_and_what_became_of_it():
    window = opened()
    window.add(words(30), SYSTEM)
    window.add(words(20), USER, pinned=True)
    window.add(words(20), USER)
    window.add(words(15), DOCUMENT)
    window.add(words(10), DOCUMENT)
    stats = window.stats()
    assert (stats.agent_id, stats.max_tokens, stats.current_tokens) == ("default", 100, 75)
    assert (stats.peak_tokens, stats.usage_percent) == (85, 75.0)
    assert (stats.item_count, stats.pinned_count) == (4, 1)
    assert stats.items_by_type == {SYSTEM: 1, DOCUMENT: 2, USER: 1}
    assert stats.tokens_by_type == {SYSTEM: 30, DOCUMENT: 25, USER: 20}
    assert (stats.compactions, stats.items_compacted) == (1, 1)


# The window itself


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"max_tokens": 1.5}, "max_tokens must be an int"),
        ({"agent_id": ""}, "agent_id cannot be empty"),
        ({"compaction_threshold": 0}, "compaction_threshold must be at least 1"),
        ({"compaction_threshold": 101}, "compaction_threshold must be from 1 to 100"),
        ({"compaction_strategy": 9}, "strategy 9 is unknown"),
        ({"license": "teams"}, "license must be a policy"),
        ({"counter": 5}, "counter must have a method 'count'"),
        ({"summarizer": 5}, "summarizer must be callable"),
    ],
)
def test_a_window_says_which_argument_is_wrong(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        ContextWindow(**{"max_tokens": 100, **arguments})


def test_a_window_has_the_documented_defaults():
    window = ContextWindow(4000)
    assert (window.agent_id, window.max_tokens, window.compaction_threshold) == (
        "default", 4000, 85,
    )  # fmt: skip
    assert window.compaction_strategy is CompactionStrategy.REMOVE_LOW_PRIORITY
    assert (window.current_tokens, window.available_tokens, window.usage_percent) == (0, 4000, 0)
    item = window.add("tea for two", USER)
    assert item.added_at.tzinfo is UTC


def test_a_low_threshold_compacts_to_nothing():
    window = opened(compaction_threshold=10)
    window.add(words(10), USER, id="a")
    window.add(words(5), USER, id="b")
    assert [item.id for item in window.items()] == ["b"]


def test_the_names_are_at_the_package():
    assert mnemic.ContextWindow is ContextWindow
    assert mnemic.ContextItem is ContextItem
    assert mnemic.ContextItemType is ContextItemType
    assert mnemic.CompactionStrategy is CompactionStrategy
    assert mnemic.BuildContextOptions is BuildContextOptions


def test_many_threads_never_lose_count():
    window = ContextWindow(2000, counter=Words())
    failures = []

    def work(number):
        try:
            for turn in range(150):
                window.add(words(turn % 9 + 1), USER, priority=turn % 100)
                window.try_add(document(words(3), f"m{turn % 40}", priority=turn % 90))
                if turn % 7 == number:
                    item = window.items()[-1]
                    window.remove(item.id)
                if turn % 11 == number:
                    window.compact(target_percent=30)
                assert window.build().token_count <= 2000
        except Exception as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    items = window.items()
    assert window.current_tokens == sum(item.token_count for item in items) <= 2000
    refs = [item.source_ref for item in items if item.source_ref]
    assert len(refs) == len(set(refs))


def test_summarising_from_many_threads_ends_within_the_window():
    window = ContextWindow(
        100, counter=Words(), compaction_strategy="summarize", summarizer=lambda _: "in short"
    )
    failures = []

    def work():
        try:
            for _ in range(60):
                window.add(words(7), USER)
        except Exception as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert window.current_tokens == sum(item.token_count for item in window.items()) <= 100
