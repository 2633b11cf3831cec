"""The default embedder against the float model."""

import hashlib
import json
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import mnemic_minilm
import numpy as np
import pytest

from mnemic import CachedEmbedder, Memory, as_embedder, errors
from mnemic._core import SentenceEncoder, Tokenizer
from mnemic.embed import Embedder, MiniLmEmbedder, validated
from mnemic.embed.validated import ValidatedEmbedder
from tests.support.paths import FIXTURES
from tests.support.word_piece import expected, tokenizer_file
from tests.support.word_piece import reference as reference_tokenizer

FIXTURE = FIXTURES / "minilm_reference.json"
REPEATS = 20  # as models/minilm/write_fixture.py repeats the last text


@pytest.fixture(scope="module")
def embedder():
    return MiniLmEmbedder()


@pytest.fixture(scope="module")
def texts():
    written = json.loads(FIXTURE.read_text(encoding="utf-8"))
    return [*written, written[-1] * REPEATS]


@pytest.fixture(scope="module")
def reference():
    return np.load(FIXTURE.with_suffix(".npy"))


@pytest.fixture(scope="module")
def one_by_one(embedder, texts):
    return np.concatenate([embedder.embed([text]) for text in texts])


def run_python(program):
    """Run `program` in a fresh interpreter and return what it printed, errors included."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    return done.stdout.strip()


def test_every_fixture_text_is_near_the_float_model(one_by_one, reference, texts):
    cosines = (one_by_one * reference).sum(axis=1)
    assert cosines.shape == (21,)
    far = [
        (text[:40], cosine) for text, cosine in zip(texts, cosines, strict=True) if cosine < 0.99
    ]
    assert not far


def test_related_texts_keep_the_order_of_the_float_model(one_by_one, reference):
    # texts 2 and 3: an allergy, and the question what can be eaten
    rounded = one_by_one @ one_by_one[3]
    assert np.argmax(np.delete(rounded, 3)) == np.argmax(np.delete(reference @ reference[3], 3))
    assert rounded[2] == pytest.approx(reference[2] @ reference[3], abs=0.03)


def test_rows_have_unit_length_and_the_documented_form(one_by_one, embedder):
    assert one_by_one.dtype == np.float32
    assert one_by_one.shape[1] == embedder.dimensions == 384
    np.testing.assert_allclose(np.linalg.norm(one_by_one, axis=1), 1.0, atol=1e-6)


def test_a_vector_does_not_depend_on_its_batch_mates(embedder, texts, one_by_one):
    assert embedder.embed(texts).tobytes() == one_by_one.tobytes()
    assert embedder.embed(texts[::-1])[::-1].tobytes() == one_by_one.tobytes()


def test_a_vector_does_not_depend_on_the_number_of_threads(texts, one_by_one):
    assert MiniLmEmbedder(threads=3).embed(texts).tobytes() == one_by_one.tobytes()


def test_several_threads_may_call_one_embedder(texts, one_by_one):
    embedder, together = MiniLmEmbedder(), Barrier(4)

    def embed(_):
        together.wait()
        return embedder.embed(texts).tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(embed, range(4))) == {one_by_one.tobytes()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_forked_in_the_midst_of_a_load_embeds_as_the_first_one(embedder):
    program = """
import os, signal, threading, warnings
from mnemic.embed import local
warnings.simplefilter("ignore")
load, here, go_on = local.SentenceEncoder, threading.Event(), threading.Event()
def slow(*given):
    here.set()
    return go_on.wait() and load(*given)
local.SentenceEncoder = slow
embedder = local.MiniLmEmbedder()
threading.Thread(target=embedder.embed, args=(["text"],)).start()
here.wait()
if not (child := os.fork()):
    local.SentenceEncoder = load
    signal.alarm(60)
    print(embedder.embed(["text"] * 200)[-1].tobytes().hex(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
go_on.set()
"""
    assert run_python(program) == embedder.embed(["text"]).tobytes().hex()


def test_no_texts_give_no_rows_and_load_nothing():
    embedder = MiniLmEmbedder()
    assert embedder.embed([]).shape == (0, 384)
    assert embedder.embed_batch([]).truncated.shape == (0,)
    assert embedder._loaded is None


def test_all_blank_texts_have_the_same_vector(embedder):
    vectors = embedder.embed(["", " ", "\n\t", "\x00", "\u3000"])
    assert {row.tobytes() for row in vectors} == {vectors[0].tobytes()}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one string", "not one string"),
        (b"bytes", "not one string"),
        (7, "not int"),
        (None, "not NoneType"),
        (["fine", 7], r"texts\[1\] must be a string, not int"),
        ([None], r"texts\[0\] must be a string, not NoneType"),
        (["fine", "half \ud83d of a pair"], r"texts\[1\] holds half of a surrogate pair"),
    ],
)
def test_what_is_no_sequence_of_texts_is_refused(embedder, texts, message):
    with pytest.raises(errors.InvalidArgumentError, match=message):
        embedder.embed(texts)


def test_texts_longer_than_the_model_sees_are_reported(embedder):
    fits, too_long = "word " * 254, "word " * 255  # two more tokens mark beginning and end
    batch = embedder.embed_batch([fits, too_long, "short"])
    assert batch.truncated.tolist() == [False, True, False]
    assert batch.truncated_count == 1
    assert batch.vectors[0].tobytes() == batch.vectors[1].tobytes()


@pytest.mark.parametrize(
    "text",
    [
        "a word " * 150_000,
        "x" * 1_000_000,
        "e" + "\u0301" * 100_000,
        "\0" * 1_000_000,
        "\N{GRINNING FACE}" * 10_000,
        "\ufdfa" * 100_000,
        "".join(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)])),
    ],
    ids=["words", "one word", "marks", "control", "emoji", "ligatures", "all characters"],
)
def test_a_hostile_text_takes_a_moment_and_changes_no_vector_beside_it(embedder, text):
    begun = time.monotonic()
    alone, beside, again = embedder.embed([text, "tea at noon", text])
    assert time.monotonic() - begun < 10  # .1 s on a quiet machine
    assert alone.tobytes() == again.tobytes()
    assert np.linalg.norm(alone) == pytest.approx(1.0, abs=1e-6)
    assert beside.tobytes() == embedder.embed(["tea at noon"])[0].tobytes()


@pytest.mark.parametrize(
    ("text", "truncated"),
    [
        ("A garden of words, read aloud. " * 1000, True),
        ("word" + " " * 6000 + "word " * 300, True),
        ("word" + "\n" * 6000 + "end of it", False),
        ("x" * 9000, False),
        ("x" * 5000 + " and then a few words", False),
        ("語" * 5000, True),
        ("word\u3000\u2003" * 3000, True),
    ],
)
def test_a_long_text_is_cut_where_the_library_cuts_it(embedder, text, truncated):
    ids, is_cut, seen = expected(reference_tokenizer(), text)
    tokens, was_cut = embedder._load().tokenizer.encode(text)
    assert (tokens[0].tolist(), was_cut) == (ids, is_cut)
    assert embedder.characters_seen(text) == seen
    assert was_cut is truncated


def test_truncation_is_a_warning_once_and_then_a_detail(caplog):
    embedder = MiniLmEmbedder()
    with caplog.at_level(logging.DEBUG, "mnemic.embed.local"):
        embedder.embed(["short"])
        embedder.embed(["word " * 300, "short"])
        embedder.embed(["word " * 300])
    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG"]
    assert caplog.records[0].getMessage().startswith("1 of 2 texts are longer than 256 tokens")


def test_the_default_embedder_is_an_embedder_with_a_floor(embedder):
    assert isinstance(embedder, Embedder)
    assert embedder.model == mnemic_minilm.MODEL_NAME == "all-MiniLM-L6-v2-int8-per-token"
    assert embedder.max_tokens == 256
    assert 0.0 < embedder.similarity_floor < 0.5


def test_the_floor_stands_between_a_question_with_its_answer_and_an_unrelated_text(embedder):
    question, answer, unrelated = embedder.embed(
        [
            "Which city does she live in?",
            "She moved to Bergen in March and opened a bakery near the harbour.",
            "The printer on the second floor is out of toner.",
        ]
    )
    assert question @ unrelated < embedder.similarity_floor < question @ answer


def test_fewer_than_one_thread_is_refused():
    with pytest.raises(errors.InvalidArgumentError, match="at least 1"):
        MiniLmEmbedder(threads=0)


def test_a_missing_package_is_named_with_the_pip_line(monkeypatch):
    embedder = MiniLmEmbedder()
    monkeypatch.setitem(sys.modules, "mnemic_minilm", None)
    with pytest.raises(
        errors.MissingExtraError, match=r"mnemic-minilm: .*pip install 'mnemic\[local\]'"
    ):
        MiniLmEmbedder()
    with pytest.raises(errors.MissingExtraError, match=r"pip install 'mnemic\[local\]'"):
        embedder.embed(["text"])


@pytest.mark.parametrize("file", ["weights_path", "tokenizer_path"])
@pytest.mark.parametrize("size", [0, 100, 100_000])
def test_a_damaged_file_of_the_model_is_an_embedding_error(monkeypatch, tmp_path, file, size):
    damaged = tmp_path / "damaged"
    damaged.write_bytes(getattr(mnemic_minilm, file)().read_bytes()[:size])
    monkeypatch.setattr(mnemic_minilm, file, lambda: damaged)
    with pytest.raises(errors.EmbeddingError, match=r"cannot be (loaded|used|read)"):
        MiniLmEmbedder().embed(["text"])


def test_a_changed_byte_is_found_where_the_checksum_is_compared(embedder, tmp_path):
    changed = bytearray(mnemic_minilm.weights_path().read_bytes())
    changed[-70_000] ^= 1
    path = tmp_path / "weights.bin"
    path.write_bytes(changed)
    tokenizer = embedder._load().tokenizer
    SentenceEncoder(path, tokenizer)
    with pytest.raises(errors.EmbeddingError, match="checksum"):
        SentenceEncoder(path, tokenizer, verify=True)
    SentenceEncoder(mnemic_minilm.weights_path(), tokenizer, verify=True)


def test_a_file_whose_numbers_are_none_gives_vectors_that_are_refused(monkeypatch, tmp_path):
    odd = bytearray(mnemic_minilm.weights_path().read_bytes())
    scales = slice(128 + 30_522 * 384, 128 + 30_522 * 388)  # of the words, after their codes
    odd[scales] = b"\xff" * (4 * 30_522)  # NaN
    odd[96:128] = hashlib.sha256(odd[:96] + odd[128:]).digest()
    path = tmp_path / "weights.bin"
    path.write_bytes(odd)
    monkeypatch.setattr(mnemic_minilm, "weights_path", lambda: path)
    embedder = MiniLmEmbedder()
    SentenceEncoder(path, embedder._load().tokenizer, verify=True)
    with Memory(":memory:", embedder=embedder) as memory:
        with pytest.raises(errors.EmbedderResultError, match="NaN or infinity"):
            memory.add("She opened a bakery.")
        assert memory.count() == 0


@pytest.mark.parametrize("kernel", ["avx512vnni", "avxvnni", "avx2", "neondot", "neon", "portable"])
def test_every_kernel_makes_the_same_vectors(embedder, kernel):
    texts = [*("word " * length for length in (0, 1, 7, 30, 61, 130, 253)), "語" * 17, "é?" * 40]
    program = f"""
import os
os.environ["MNEMIC_KERNEL"] = {kernel!r}
import hashlib
from mnemic.embed import MiniLmEmbedder
from mnemic.errors import KernelUnavailableError
try:
    print(hashlib.sha256(MiniLmEmbedder().embed({texts!r}).tobytes()).hexdigest())
except KernelUnavailableError:
    print("unavailable")
"""
    found = run_python(program)
    if found == "unavailable":
        pytest.skip("of another CPU")
    assert found == hashlib.sha256(embedder.embed(texts).tobytes()).hexdigest()


def test_a_tokenizer_of_another_model_is_refused():
    pieces = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 10**6, "text": 3}
    tokenizer = Tokenizer.word_piece(tokenizer_file(pieces), max_tokens=256)
    encoder = SentenceEncoder(mnemic_minilm.weights_path(), tokenizer)
    with pytest.raises(errors.InvalidArgumentError, match="token 1000000"):
        encoder.embed(["text"])


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.001])
def test_a_call_that_is_over_raises(embedder, seconds):
    with pytest.raises(errors.DeadlineExceededError):
        embedder._load().encoder.embed(["text " * 200] * 200, deadline=time.monotonic() + seconds)


def test_a_search_gives_up_at_its_deadline_in_its_own_thread(embedder, monkeypatch):
    embedder.embed(["loaded"])
    monkeypatch.setattr(validated, "started", None)
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("She opened a bakery.")
        assert memory.search("Who bakes?", timeout=60.0)
        with pytest.raises(errors.DeadlineExceededError):
            memory.search("Who sleeps?", timeout=0.0)


def test_no_caller_of_a_cache_is_given_the_deadline_of_another():
    assert ValidatedEmbedder(MiniLmEmbedder()).keeps_deadlines is False
    embedder = MiniLmEmbedder()
    embedder.embed(["loaded"])
    assert ValidatedEmbedder(embedder).keeps_deadlines is True
    assert ValidatedEmbedder(CachedEmbedder(embedder)).keeps_deadlines is False


def test_embedding_opens_no_socket_and_prints_nothing():
    program = """
import socket
def refuse(*_, **__):
    raise AssertionError("the network was touched")
socket.socket = socket.create_connection = socket.getaddrinfo = refuse
from mnemic.embed import MiniLmEmbedder
assert MiniLmEmbedder().embed(["text"]).shape == (1, 384)
"""
    assert run_python(program) == ""


def test_the_data_package_holds_exactly_the_recorded_files():
    for path, recorded in [
        (mnemic_minilm.weights_path(), mnemic_minilm.WEIGHTS_SHA256),
        (mnemic_minilm.tokenizer_path(), mnemic_minilm.TOKENIZER_SHA256),
    ]:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == recorded


class Subclass(MiniLmEmbedder):
    """Does something of its own beside each call, as the type checker forbids."""


class Proxy:
    """Hands everything over to another embedder."""

    def __init__(self, embedder):
        self._embedder = embedder

    def __getattr__(self, name):
        return getattr(self._embedder, name)

    def embed(self, texts):
        return self._embedder.embed(texts)


FORMS = {
    "direct": lambda embedder: embedder,
    "cached": CachedEmbedder,
    "adapted": as_embedder,
    "renamed": lambda embedder: as_embedder(embedder, model="another name"),
    "joined": lambda embedder: as_embedder(embedder, join_calls=True),
    "a function": lambda embedder: as_embedder(embedder.embed, model="m", dimensions=384),
    "a subclass": lambda _: Subclass(threads=1),
    "a proxy": Proxy,
}


def question(number, words=150):
    return f"Who told whom of tea {number}? " * (words // 6)


@pytest.mark.parametrize("form", FORMS)
def test_the_deadline_of_one_search_reaches_no_other_and_is_told_as_such(embedder, form):
    given = FORMS[form](embedder)
    given.embed(["loaded"])
    with Memory(":memory:", embedder=given) as memory:
        memory.add("She opened a bakery.")
        over, outcomes = Event(), Counter()

        def hurry(seed):
            number = seed
            while not over.is_set():
                number += 2
                timeout = 10.0 ** -(number % 5 + 1)
                try:
                    memory.search(question(number // 6), timeout=timeout)
                    outcomes["answered"] += 1
                except errors.DeadlineExceededError:
                    outcomes["late"] += 1
                partial = memory.search(question(number), timeout=timeout, on_timeout="partial")
                outcomes["partial"] += partial.partial

        with ThreadPoolExecutor(2) as pool:
            hurried = [pool.submit(hurry, seed) for seed in range(2)]
            try:
                for number in range(40):
                    assert memory.search(question(number // 2))
                    memory.add(question(number))
            finally:
                over.set()
            for each in hurried:
                each.result()
        assert outcomes["late"]
        assert outcomes["partial"]


def test_only_the_embedder_itself_keeps_deadlines(embedder):
    embedder.embed(["loaded"])
    kept = {form: ValidatedEmbedder(make(embedder)).keeps_deadlines for form, make in FORMS.items()}
    assert [form for form in kept if kept[form]] == ["direct", "adapted", "renamed"]


def test_a_call_within_another_has_no_deadline_of_it(embedder):
    embedder.embed(["loaded"])
    checked, found = ValidatedEmbedder(embedder), []
    search = checked.queries_until
    deadline = time.monotonic() + 2

    def counted(_):
        if not found:
            found.append("the first")
            time.sleep(max(0, deadline - time.monotonic()))
            found.extend(search(["within"], None))

    checked.calls.on_embedded = counted
    search(["beside"], deadline)
    assert found[1].shape == (1, 384)


def test_a_file_with_vectors_of_the_model_before_is_told_and_moved(embedder, tmp_path):
    before = as_embedder(
        lambda texts: -embedder.embed(texts), model="all-MiniLM-L6-v2-int8", dimensions=384
    )
    path = tmp_path / "memories.db"
    with Memory(path, embedder=before) as memory:
        memory.add_many(["She opened a bakery.", "The printer is out of toner."])
    with pytest.raises(errors.EmbeddingModelMismatchError, match="reembed=True"):
        Memory(path)
    with Memory(path, reembed=True) as memory:
        assert memory.search("Who opened a bakery?")  # by keywords, until all are moved
        memory.reembed()
        (hit,) = memory.search("Who bakes bread?", search_type="semantic", limit=1)
        assert hit.content == "She opened a bakery."
        assert hit.similarity > 0
