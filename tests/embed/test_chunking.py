"""How texts that are longer than an embedder sees are cut into parts."""

import logging
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.embed import MiniLmEmbedder
from mnemic.embed.chunking import MAX_CHUNKS, Chunker

pytestmark = pytest.mark.requirement("C165")

SENTENCES = "The tea is green. Is it hot? It was, an hour ago! Nobody drank it. "
ALPHABET = "ab cd. e!\n日本。é🙂가"


def words_seen(most):
    """Return what tells how much of a text one sees who sees so many words."""

    def seen(text):
        ends = [word.end() for word in re.finditer(r"\S+", text)]
        return len(text) if len(ends) <= most else ends[most - 1]

    return seen


def by_words(most):
    return Chunker(most, words_seen(most))


def estimated_tokens(text):
    return sum(1 / 3 if character <= "\u024f" else 1 for character in text)


@pytest.fixture(scope="module")
def minilm():
    return MiniLmEmbedder()


@pytest.mark.parametrize("text", ["tea", "日本語", "é" * 7, "x" * 14])
def test_a_short_text_is_one_part_and_is_not_looked_at(text):
    def refuses(_text):
        raise AssertionError

    assert Chunker(16, refuses).chunks(text) == [text]


def test_an_embedder_that_sees_everything_gets_texts_whole():
    assert Chunker(None).chunks(SENTENCES * 10_000) == [SENTENCES * 10_000]


def test_a_text_that_is_just_seen_whole_is_one_part():
    assert by_words(100).chunks("word " * 100) == ["word " * 100]
    assert len(by_words(100).chunks("word " * 101)) == 2
    assert Chunker(12).chunks("x" * 30) == ["x" * 30]
    assert len(Chunker(12).chunks("x" * 31)) == 2
    assert Chunker(12).chunks("日" * 10) == ["日" * 10]
    assert len(Chunker(12).chunks("日" * 11)) == 2


def test_a_text_of_many_blanks_is_seen_as_far_as_its_words_go():
    text = "\t" * 100_000 + "word " * 50
    assert by_words(50).chunks(text) == [text]


def test_parts_end_with_sentences_and_begin_with_them():
    chunks = by_words(40).chunks(SENTENCES * 10)
    assert len(chunks) > 2
    assert all(part.endswith((". ", "? ", "! ")) for part in chunks)
    assert all(part.startswith(("The", "Is", "It", "Nobody")) for part in chunks)


def test_without_sentences_parts_end_and_begin_with_words():
    chunks = by_words(40).chunks("plain words without an end " * 30)
    assert len(chunks) > 2
    words = {"plain", "words", "without", "an", "end"}
    assert all(set(part.split()) <= words for part in chunks)


def test_parts_overlap_by_about_fifteen_percent():
    spans = by_words(100).spans("word " * 1500)
    shares = [(before[1] - after[0]) / (before[1] - before[0]) for before, after in pairwise(spans)]
    assert len(shares) > 10
    assert all(0.07 < share < 0.23 for share in shares)


def test_blank_parts_are_left_out():
    text = "x" * 30 + " " * 300 + "y" * 30
    chunker = Chunker(12)
    chunks = chunker.chunks(text)
    assert 2 <= len(chunks) < len(chunker.spans(text))
    assert all(map(str.strip, chunks))
    assert chunks[0] == "x" * 30
    assert any("y" * 25 in part for part in chunks)


def test_a_longer_text_is_seen_in_samples_from_its_first_word_to_its_last(caplog):
    text = " ".join(f"word{number}" for number in range(5000))
    with caplog.at_level(logging.INFO, "mnemic.embed.chunking"):
        spans = by_words(20).spans(text)
    assert len(spans) == MAX_CHUNKS
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    gaps = [after[0] - before[1] for before, after in pairwise(spans)]
    assert min(gaps) > 0.9 * max(gaps) > 0
    assert [record.args for record in caplog.records] == [(len(text), MAX_CHUNKS, sum(gaps))]
    assert "word" not in caplog.text


def test_up_to_the_limit_nothing_is_left_out_and_nothing_logged(caplog):
    caplog.set_level(logging.INFO, "mnemic.embed.chunking")
    text = "word " * (16 * 32)
    spans = by_words(20).spans(text)
    assert len(spans) <= MAX_CHUNKS
    assert all(after[0] < before[1] for before, after in pairwise(spans))
    assert caplog.records == []


def check(text, spans, is_seen):
    """Check what holds for the parts of any text."""
    assert 1 <= len(spans) <= MAX_CHUNKS
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    assert all(begin < end for begin, end in spans)
    assert all(before[0] < after[0] for before, after in pairwise(spans))
    assert all(is_seen(text[begin:end]) for begin, end in spans)
    if len(spans) < MAX_CHUNKS:
        assert all(after[0] <= before[1] for before, after in pairwise(spans))


@given(st.text(st.sampled_from(ALPHABET), min_size=1, max_size=400), st.integers(3, 40))
def test_every_part_fits_by_the_estimate_and_together_they_are_the_text(text, most):
    spans = Chunker(most).spans(text)
    check(text, spans, lambda part: estimated_tokens(part) <= max(1, most - 2) + 1e-6)


@given(st.text(st.sampled_from(ALPHABET), min_size=1, max_size=400), st.integers(1, 12))
def test_every_part_fits_by_the_embedders_own_count(text, most):
    seen = words_seen(most)
    check(text, by_words(most).spans(text), lambda part: seen(part) == len(part))


@given(st.text(min_size=1, max_size=300), st.integers(0, 5))
def test_an_embedder_that_counts_oddly_still_ends(text, odd):
    spans = Chunker(3, lambda part: min(odd, len(part))).spans(text)
    check(text, spans, lambda part: len(part) <= max(1, odd))


@pytest.mark.parametrize(
    "text",
    [
        SENTENCES * 60,
        "日本語の文章は空白なしで書かれる。" * 60,
        "Ёжик в тумане. " * 100,
        "नमस्ते दुनिया " * 200,
        "한국어 문장은 길다. " * 100,
        "a1b2-c3/" * 500,
        "🙂 grinning 🙂 " * 200,
    ],
)
def test_the_local_model_sees_each_part_whole(minilm, text):
    chunker = Chunker(minilm.max_tokens, minilm.characters_seen)
    chunks = chunker.chunks(text)
    assert len(chunks) > 1
    assert not minilm.embed_batch(chunks).truncated.any()
    check(text, chunker.spans(text), lambda part: minilm.characters_seen(part) == len(part))


def test_the_local_model_tells_how_much_it_sees(minilm):
    assert minilm.characters_seen("tea " * 254) == 4 * 254
    assert minilm.characters_seen("tea " * 255) == 4 * 254 - 1
