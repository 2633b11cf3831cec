"""Token counters."""

import sys
import threading

import mnemic_minilm
import pytest
import tokenizers

from mnemic import _core
from mnemic.context import ContextWindow, EstimatedTokens, TokenizerTokens
from mnemic.errors import InvalidArgumentError, MissingExtraError
from tests.support.windows import USER, Words, words

pytestmark = pytest.mark.requirement("C018", "C019", "C020", "C021", "C022", "C028", "C042", "C043")


def test_the_estimate_counts_by_script_and_rounds_up():
    estimate = _core.estimate_tokens
    assert [estimate(text) for text in ("", "a", "tea for two", "чай", "茶を飲む", "🍵")] == [
        0, 1, 3, 2, 4, 2,
    ]  # fmt: skip
    assert EstimatedTokens().count("tea for two") == 3


@pytest.mark.parametrize("wrong", [3, None, b"tea"])
def test_only_text_can_be_estimated(wrong):
    with pytest.raises(TypeError):
        _core.estimate_tokens(wrong)


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(InvalidArgumentError, match="text has a lone surrogate at position 1"):
        _core.estimate_tokens("a\ud800")


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
