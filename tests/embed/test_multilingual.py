"""The multilingual embedder: on a small model of random weights, and the real one if it is here."""

import hashlib
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from mnemic import E5Embedder, Memory
from mnemic._core import SentenceEncoder, Tokenizer
from mnemic.errors import EmbeddingError, EmbeddingModelMismatchError, MissingExtraError
from tests.support.e5 import PIECES, POSITIONS, small_package, write_package
from tests.support.tiers import examples

REAL = find_spec("mnemic_e5") is not None
needs_weights = pytest.mark.skipif(
    not REAL, reason="mnemic-e5 is not installed; `make multilingual` builds and installs it"
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Have a small model in place of the real one."""
    return small_package(tmp_path, monkeypatch, PIECES)


@pytest.fixture
def embedder(package):  # noqa: ARG001 - which it finds by its name
    return E5Embedder()


def core_of(package):
    tokenizer = Tokenizer.unigram(package, max_tokens=POSITIONS)
    return tokenizer, SentenceEncoder(package.with_name("weights.bin"), tokenizer, verify=True)


def test_memories_and_questions_have_the_prefixes_of_the_model(embedder, package):
    _, encoder = core_of(package)
    document, question = encoder.embed(["passage: anna moved", "query: anna moved"])[0]
    assert np.array_equal(embedder.embed(["anna moved"])[0], document)
    assert np.array_equal(embedder.embed_query("anna moved"), question)
    assert not np.array_equal(document, question)


def test_a_prefix_is_no_part_of_what_is_seen(embedder):
    assert embedder.characters_seen("anna moved to oslo") == len("anna moved to oslo")
    long = "oslo " * 200
    seen = embedder.characters_seen(long)
    assert 0 < seen < POSITIONS * len("oslo ")
    assert embedder.characters_seen("") == 0
    vectors, truncated = embedder.embed_batch([long, long[:seen], "oslo"])
    assert truncated.tolist() == [True, False, False]
    assert np.array_equal(vectors[0], vectors[1])


@examples(300)
@given(st.text("ab é中文\uff5e\u0301\n", max_size=9), st.integers(1, 60))
def test_what_is_seen_has_the_same_tokens(part, times):
    tokenizer = tokenizer_of(PIECES, max_tokens=20)
    text = part * times
    tokens, _ = tokenizer.encode(text)
    seen = text[: tokenizer.characters_seen(text)]
    again, is_cut = tokenizer.encode(seen)
    assert again[0].tolist() == tokens[0].tolist()
    assert not is_cut


def test_it_compares_any_language_on_a_scale_that_is_learned(embedder):
    assert (embedder.similarity_floor, embedder.languages, embedder.score_floors) == (
        None,
        None,
        {},
    )
    assert (embedder.dimensions, embedder.max_tokens) == (384, POSITIONS)


@pytest.mark.usefixtures("package")
def test_a_memory_is_opened_with_its_name(tmp_path):
    path = tmp_path / "a.db"
    with Memory(path, embedder="multilingual") as memory:
        memory.add_many(["anna moved to oslo", "a dog in may"])
        assert memory.embedder.model == E5Embedder().model
        hits = memory.search("anna moved to oslo", search_type="semantic")
        assert hits[0].content == "anna moved to oslo"
    with pytest.raises(EmbeddingModelMismatchError, match="multilingual-e5-small"):
        Memory(path)


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("embedders", [("minilm", "multilingual"), ("multilingual", "minilm")])
def test_a_file_goes_from_one_model_to_the_other(tmp_path, embedders):
    before, after = embedders
    path = tmp_path / "a.db"
    with Memory(path, embedder=before) as memory:
        memory.add_many(["anna moved to oslo", "tea in may"])
    with Memory(path, embedder=after, reembed=True) as memory:
        assert memory.reembed().is_complete
        assert memory.search("tea in may", search_type="semantic")[0].content == "tea in may"
    with Memory(path, embedder=after) as memory:
        assert not memory.verify().problems


def test_a_missing_package_is_named_with_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "mnemic_e5", None)
    with pytest.raises(MissingExtraError, match=r"mnemic-e5: .*'mnemic\[multilingual\]'"):
        Memory(":memory:", embedder="multilingual")


@pytest.mark.parametrize("file", ["weights.bin", "pieces.bin"])
@pytest.mark.parametrize("size", [0, 40, 100, -16])
def test_a_damaged_file_of_the_model_is_an_embedding_error(embedder, package, file, size):
    path = package.with_name(file)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(EmbeddingError, match=r"cannot be (loaded|used|read)"):
        embedder.embed(["text"])


def test_files_that_do_not_fit_each_other_are_an_embedding_error(embedder, package):
    with tempfile.TemporaryDirectory() as folder:
        other = write_package(Path(folder), PIECES | {"zebra": -4.0})
        package.write_bytes(other.read_bytes())
    with pytest.raises(EmbeddingError, match="do not fit each other"):
        embedder.embed(["zebra"])


def test_the_built_file_holds_every_piece_with_its_id(package):
    tokenizer, _ = core_of(package)
    for token, piece in enumerate(PIECES, 4):
        if text := piece.removeprefix("▁"):
            is_within = text == piece  # of a word, between letters that are one piece each
            ids = tokenizer.encode(f"é{text}é" if is_within else text)[0][0]
            assert ids[-3 if is_within else 1] == token


ALPHABET = "abé中"


@examples(200)
@given(
    st.dictionaries(st.text(ALPHABET, min_size=2, max_size=4), st.floats(-9, -1, width=32)),
    st.lists(st.text(f"{ALPHABET}x ", max_size=12), max_size=6),
)
def test_tokens_are_those_of_the_library(pieces, texts):
    letters = {letter: -10.5 - at for at, letter in enumerate(f"▁{ALPHABET}")}
    known = {**letters, **pieces, **{f"▁{piece}": score - 0.5 for piece, score in pieces.items()}}
    library = tokenizers.Tokenizer(
        tokenizers.models.Unigram(
            [*((token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")), *known.items()],
            unk_id=3,
        )
    )
    library.normalizer = tokenizers.normalizers.Sequence(
        [
            tokenizers.normalizers.Strip(),
            tokenizers.normalizers.Replace(tokenizers.Regex(" +"), " "),
        ]
    )
    library.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    own = tokenizer_of(known)
    for text in texts:
        wanted = library.encode(text)
        found = own.encode(text)[0][0].tolist()[1:-1]
        assert cost(found, known) == pytest.approx(cost(wanted.ids, known)), text


def cost(ids, known):
    """Return the sum of scores: of cuts with the same one either is right."""
    scores = list(known.values())
    return sum(scores[token - 4] if token >= 4 else -1000 for token in ids)


def tokenizer_of(pieces, max_tokens=10**6):
    with tempfile.TemporaryDirectory() as folder:
        return Tokenizer.unigram(write_package(Path(folder), pieces), max_tokens=max_tokens)


@needs_weights
class TestRealModel:
    def test_its_files_are_those_of_the_build(self):
        mnemic_e5 = import_module("mnemic_e5")
        for path, wanted in (
            (mnemic_e5.weights_path(), mnemic_e5.WEIGHTS_SHA256),
            (mnemic_e5.tokenizer_path(), mnemic_e5.TOKENIZER_SHA256),
        ):
            assert hashlib.sha256(path.read_bytes()).hexdigest() == wanted

    @pytest.mark.parametrize(
        ("question", "answer"),
        [
            ("Wo wohnt Anna jetzt?", "anna"),
            ("¿Cómo se llama el perro?", "dog"),
            ("她昨天参观了什么", "museum"),
            ("Où Anna habite-t-elle ?", "anna"),
            ("What is the name of the dog?", "dog"),
        ],
    )
    def test_a_question_in_another_language_finds_its_answer(self, question, answer):
        texts = {
            "anna": "Anna moved to Bergen in March.",
            "dog": "Unser Hund heißt Rocky.",
            "museum": "我昨天去了上海博物馆。",
            "rent": "La renta vence el día cinco.",
        }
        with Memory(":memory:", embedder="multilingual") as memory:
            memory.add_many([*texts.values()])
            hits = memory.search(question, search_type="semantic", limit=1)
        assert hits[0].content == texts[answer]
