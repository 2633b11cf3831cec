"""Speed of the default embedder, and the measurement behind its similarity floor.

python -m benches.embed               speed, in turns with onnxruntime
python -m benches.embed --calibrate   cosines of related and unrelated sentences
python -m benches.embed --multilingual   the multilingual model in turns with the default

onnxruntime runs the same model in 8-bit integers as it does fastest, with the same tokenizer: the
file that mnemic-minilm had, which git keeps, or that of `--onnx`. Times are of the processor, on
one thread: lower quartiles, and medians of both. The time of a process is from the start of the
interpreter to its end.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from functools import partial
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from shutil import which

import mnemic_minilm
import numpy as np

from benches.support.datasets import CACHE
from benches.support.environment import cpu_fact
from benches.support.timing import clock, interleave, quartile, timed, work
from mnemic import Memory
from mnemic._core import Tokenizer
from mnemic.embed import E5Embedder, MiniLmEmbedder

PAIRS = Path(__file__).with_name("embed_pairs.json")
OF_ONNX = "6b934083:models/minilm/mnemic_minilm/model.onnx"
ONNX_SHA256 = "e81fbcd1d55abb50a10a4204cdb7879cdebc4777c02b483ec6264764859cef27"
QUESTION_TOKENS = range(8, 13)
TEXTS, LEAST = 200, 15
"""Calls of one text that are timed, and the least of a batch."""

PROCESSES = 11
LIBRARIES = "from mnemic.embed import MiniLmEmbedder"
PROGRAMS = {
    "imports the embedder": LIBRARIES,
    "embeds a first text": f"{LIBRARIES}; MiniLmEmbedder().embed(['text'])",
    "searches by meaning": (
        "import sys; from mnemic import Memory\n"
        "with Memory(sys.argv[1]) as memory:\n"
        "    assert memory.search('What does she bake?', search_type='semantic')"
    ),
}


class OnnxRuntime:
    """onnxruntime at its fastest for one text a run, on one thread."""

    def __init__(self, path):
        import onnxruntime  # noqa: PLC0415 - of the benchmarks' libraries, which not all need

        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        slower = ["SkipLayerNormFusion"]
        self.session = onnxruntime.InferenceSession(path, options, disabled_optimizers=slower)
        file = mnemic_minilm.tokenizer_path().read_bytes()
        self.tokenizer = Tokenizer.word_piece(file, max_tokens=mnemic_minilm.MAX_TOKENS)

    def tokens(self, text):
        return self.tokenizer.encode(text)[0]

    def embed(self, texts):
        feeds = ({"input_ids": self.tokens(text)} for text in texts)
        return np.concatenate([self.session.run(["sentence_embedding"], feed)[0] for feed in feeds])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calibrate", action="store_true", help="measure cosines, not speed")
    parser.add_argument("--multilingual", action="store_true", help="time that model")
    parser.add_argument("--onnx", type=Path, default=CACHE / "minilm.onnx")
    arguments = parser.parse_args()
    if arguments.calibrate:
        calibrate()
        return
    clock.now = work
    if arguments.multilingual:
        multilingual()
        return
    embedder, peer = MiniLmEmbedder(threads=1), OnnxRuntime(onnx_file(arguments.onnx))
    print(f"{embedder.model} beside onnxruntime {peer.version} on {cpu()}")
    for name, calls in calls_by_name(peer).items():
        measure(name, calls, embedder, peer)
    measure_processes()


def multilingual():
    """Time the multilingual model beside the default, by texts and by tokens, and its load."""
    before, loading = private_bytes(), clock()
    embedder, default = E5Embedder(threads=1), MiniLmEmbedder(threads=1)
    tokenizer = embedder._load().tokenizer  # noqa: SLF001 - to count tokens
    loaded = clock()
    embedder.embed_query("Where does she live?")
    print(f"{embedder.model} beside {default.model} on {cpu()}")
    grown = (private_bytes() - before) / 2**20
    print(f"loaded in {(loaded - loading) * 1e3:.1f} ms, {grown:.1f} MiB beyond the mapped files")
    words = " ".join(text for pair in json.loads(PAIRS.read_text()) for text in pair).split()
    own = partial(of_tokens, lambda text: tokenizer.encode(f"query: {text}")[0].size, words)
    piecewise = default._load().tokenizer  # noqa: SLF001 - as above
    others = partial(of_tokens, lambda text: piecewise.encode(text)[0].size, words)
    for tokens in (12, 32, 128):
        turns(f"{tokens} tokens each", embedder, own(tokens), default, others(tokens))
    turns("the same question of 12", embedder, others(12), default, others(12))


def of_tokens(count, words, tokens):
    """Return the first run of words that has a number of tokens."""
    runs = (" ".join(words[first:end]) for first in range(99) for end in range(first, first + 120))
    return next(text for text in runs if count(text) == tokens)


def turns(name, embedder, text, default, other):
    """Time a question of each model in turns."""
    times = interleave(
        {"own": lambda _: embedder.embed_query(text), "other": lambda _: default.embed([other])},
        [None],
        rounds=40,
        turn=10,
    )
    own, peer = times["own"] / 1e3, times["other"] / 1e3
    print(f"{name}: {own:.3f} ms, the default {peer:.3f}, {own / peer:.2f} x")


def private_bytes():
    """Return the bytes of this process that are in no file."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def onnx_file(path):
    """Return the path of the ONNX file, taken from git unless it is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        git = which("git") or "git"
        path.write_bytes(subprocess.check_output([git, "show", OF_ONNX]))  # noqa: S603 - constants
    assert sha256(path.read_bytes()).hexdigest() == ONNX_SHA256, f"{path} is another file"
    return path


def calls_by_name(peer):
    """Return the texts of each call: questions as they are, or texts of a number of tokens."""
    pairs = json.loads(PAIRS.read_text(encoding="utf-8"))
    words = " ".join(text for pair in pairs for text in pair).split()
    cut = partial(of_length, peer, words)
    questions = [[text] for text, _ in pairs if peer.tokens(text).size in QUESTION_TOKENS]
    return {
        "a question of 8 to 12 tokens": questions,
        "a text of 32 tokens": [[cut(32)]],
        "a text of 128 tokens": [[cut(128)]],
        "64 texts of 30 tokens": [[cut(30, first=7 * number) for number in range(64)]],
    }


def of_length(peer, words, tokens, *, first=0):
    """Return the first run of words, from `first` on, that has this number of tokens."""
    runs = (
        " ".join(words[start:end])
        for start in range(first, len(words))
        for end in range(start + 1, start + tokens)
    )
    return next(text for text in runs if peer.tokens(text).size == tokens)


def measure(name, calls, *embedders):
    """Time one call of each embedder in turn, each after a call that does not count."""
    times = [[] for _ in embedders]
    cosines = []
    for texts in islice(cycle(calls), max(TEXTS // len(calls[0]), LEAST)):
        for embedder, seconds in zip(embedders, times, strict=True):
            embedder.embed(texts)
            seconds.append(timed(embedder.embed, texts)[0])
        vectors, others = (embedder.embed(texts) for embedder in embedders)
        cosines.append((vectors * others).sum(axis=1).min())
    own, other = (quartile(seconds) / 1e3 for seconds in times)
    medians = " and ".join(f"{np.median(seconds) * 1e3:.3f}" for seconds in times)
    print(
        f"{name}: {own:.3f} ms, onnxruntime {other:.3f}, {own / other:.2f} x; "
        f"medians {medians}; cosine at least {min(cosines):.4f}"
    )


def measure_processes():
    """Time whole processes in turns; the first and the second differ by the load of the model."""
    times = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Memory(path) as memory:
            memory.add("She moved to Bergen in March and opened a bakery.")
        for name, program in list(PROGRAMS.items()) * PROCESSES:
            command = [sys.executable, "-c", program, path]
            times[name].append(timed(partial(subprocess.run, check=True), command)[0])
    for name, seconds in times.items():
        print(f"a process that {name}: {quartile(seconds) / 1e3:.0f} ms")


def cpu():
    """Name the processor and the integer instructions that decide the speed."""
    flags = cpu_fact("flags").split()
    level = next((name for name in ("avx512_vnni", "avx_vnni", "avx2") if name in flags), "no avx2")
    return f"{cpu_fact('model name') or platform.machine()} with {level}"


def calibrate():
    """Compare each question with its own statement and with those of all other pairs."""
    pairs = json.loads(PAIRS.read_text(encoding="utf-8"))
    embedder = MiniLmEmbedder()
    questions, statements = (embedder.embed(texts) for texts in zip(*pairs, strict=True))
    cosines = questions @ statements.T
    own = np.eye(len(pairs), dtype=bool)
    report(f"{len(pairs)} related", cosines[own])
    report(f"{cosines.size - len(pairs)} unrelated", cosines[~own])
    for floor in np.arange(0.10, 0.51, 0.05):
        kept, let_in = (cosines[own] >= floor).mean(), (cosines[~own] >= floor).mean()
        print(
            f"floor {floor:.2f}: keeps {kept:6.1%} of related, lets in {let_in:6.2%} of unrelated"
        )
    right = (cosines.argmax(axis=1) == np.arange(len(pairs))).mean()
    print(f"the own statement comes first for {right:.1%} of the questions")


def report(name, cosines):
    points = ", ".join(f"p{p} {np.percentile(cosines, p):.2f}" for p in (1, 5, 25, 50, 75, 95, 99))
    print(f"{name}: {points}")


if __name__ == "__main__":
    main()
