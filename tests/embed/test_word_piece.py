"""The tokenizer of the default embedder, against recorded tokens and the library tokenizers."""

import json
import threading
from itertools import permutations

import mnemic_minilm
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemic._core import Tokenizer
from mnemic.errors import InvalidArgumentError
from tests.support.tiers import examples
from tests.support.word_piece import (
    FIXTURE,
    TEXTS,
    blocks,
    digest,
    expected,
    reference,
    tokenizer_file,
)

VOCABULARY = ["[UNK]", "[CLS]", "[SEP]", "un", "##able", "##a", "able", "!"]
MARKS = st.characters(categories=["Mn", "Mc", "Me", "Cf", "Cc", "Zs", "Po", "Sk"])
READ = "\U0001134d\u302e\U0001e00b"  # of the combining classes 9, 224 and 230
DROPPED = "\u20d3\u07ed\u0345"  # of the combining classes 1, 220 and 240
LETTERS = st.sampled_from("aeiouAEIOUéÉßİǄΩк각が豈語[]#'\u2018 \t")
PARTS = st.one_of(
    st.text(max_size=8),
    st.text(LETTERS, max_size=8),
    st.text(MARKS, max_size=4),
    st.sampled_from(["[CLS]", "[SEP]", "[UNK", "##ing", "embeddings", "x" * 99, "é" * 100]),
)
MIXED = st.builds(lambda parts, times: "".join(parts) * times, st.lists(PARTS), st.integers(1, 60))


def of_model(max_tokens=mnemic_minilm.MAX_TOKENS):
    return Tokenizer.word_piece(mnemic_minilm.tokenizer_path().read_bytes(), max_tokens=max_tokens)


def answer(tokenizer, text):
    ids, is_cut = tokenizer.encode(text)
    return ids[0].tolist(), is_cut, tokenizer.characters_seen(text)


@pytest.fixture(scope="module")
def recorded():
    return json.loads(FIXTURE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizer():
    return of_model()


@pytest.mark.parametrize("at", range(len(TEXTS)))
def test_tokens_are_the_recorded_ones(tokenizer, recorded, at):
    assert [*answer(tokenizer, TEXTS[at])] == recorded["texts"][at]


def test_every_code_point_alone_and_within_a_word_has_the_recorded_tokens(recorded):
    whole = of_model(10**6)
    assert digest(whole.encode(block)[0][0] for block in blocks()) == recorded["code_points"]


@examples(1500)
@given(MIXED)
@example("a\u0344\u0345 \u1e9b\u0323")
@example("[[CLS]]SEP]")
@example("0:0:0:A000000000:\U0001e00b\u20d3:" * 17)
@example(":\u07ed\U0001134d" * 128)
def test_tokens_are_those_of_the_library(text):
    assert answer(OWN, text) == expected(LIBRARY, text)


OWN, LIBRARY = of_model(), reference()
OWN_OF_ONE, LIBRARY_OF_ONE = of_model(3), reference(3)


@pytest.mark.parametrize(
    "marks", ["".join(order) for count in (2, 3) for order in permutations(READ + DROPPED, count)]
)
def test_marks_in_any_order_are_covered_up_to_the_last_one_that_is_read(marks):
    text = f"a{marks} more"
    seen = len(f"a{marks}".rstrip(DROPPED))
    ids = LIBRARY_OF_ONE.encode(text).ids
    assert answer(OWN_OF_ONE, text) == expected(LIBRARY_OF_ONE, text) == (ids, True, seen)
    assert answer(OWN_OF_ONE, text[:seen]) == (ids, False, seen)


@pytest.mark.parametrize("limit", [2, 3, 7])
def test_any_limit_cuts_as_the_library_does(limit):
    own, library = of_model(limit), reference(limit)
    for text in TEXTS:
        assert answer(own, text)[:2] == expected(library, text)[:2]


def made_of(pieces, *, special=("[SEP]",), max_tokens=16):
    ids = {piece: at for at, piece in enumerate(pieces)}
    return Tokenizer.word_piece(tokenizer_file(ids, special), max_tokens=max_tokens)


def test_the_longest_piece_is_taken_first_and_a_word_is_unknown_as_a_whole():
    tokenizer = made_of(VOCABULARY)
    ids, is_cut = tokenizer.encode("Unable un-able! una unx")
    assert ids.tolist() == [[1, 3, 4, 3, 0, 6, 7, 3, 5, 0, 2]]
    assert ids.dtype == "int64"
    assert not is_cut


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{}", b"[]", b"\xff", b'{"added_tokens": [], "model": {"vocab": [1]}}'),
        *(b'{"added_tokens": [], "model": {"vocab": {"a": -1}}}', b"[" * 100_000),
    ],
)
def test_another_file_is_refused(content):
    with pytest.raises(InvalidArgumentError, match=r"no tokenizer\.json"):
        Tokenizer.word_piece(content, max_tokens=256)


def test_escaped_pieces_are_read():
    escaped = tokenizer_file({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, '"': 3, "\u8a9e": 4})
    assert b"u8a9e" in escaped
    ids, _ = Tokenizer.word_piece(escaped, max_tokens=9).encode('"\u8a9e')
    assert ids.tolist() == [[1, 3, 4, 2]]


@pytest.mark.parametrize("missing", ["[UNK]", "[CLS]", "[SEP]"])
def test_a_vocabulary_without_a_token_of_the_frame_is_refused(missing):
    pieces = [piece for piece in VOCABULARY if piece != missing]
    with pytest.raises(InvalidArgumentError, match=f'no token "\\{missing[:-1]}\\]"'):
        made_of(pieces, special=[])


def test_a_special_token_outside_the_vocabulary_is_refused():
    with pytest.raises(InvalidArgumentError, match=r'no token "\[MASK\]"'):
        made_of(VOCABULARY, special=["[MASK]"])


def test_lone_surrogates_are_refused_by_their_position(tokenizer):
    for method in (tokenizer.encode, tokenizer.characters_seen):
        with pytest.raises(InvalidArgumentError, match="lone surrogate at position 3"):
            method("abc\ud800")


def test_other_threads_run_while_a_long_text_is_read(tokenizer):
    done = threading.Event()
    text = "e\u0301" * 5_000_000  # one word

    def read():
        tokenizer.encode(text)
        done.set()

    thread = threading.Thread(target=read)
    thread.start()
    turns = 0
    while not done.is_set():
        turns += 1
    thread.join()
    assert turns > 1000
    assert answer(tokenizer, text) == ([101, 100, 102], False, len(text))
