"""The default embedder's tokenizer beside the library tokenizers, whose results it has.

python -m benches.word_piece                            loading, and texts of several lengths
python -m benches.word_piece --random 1000000           compares that many random texts
python -m benches.word_piece --folder DIRECTORY         compares every line of the files there
"""

import argparse
import random
import statistics
import time
from pathlib import Path

import mnemic_minilm
import tokenizers

from mnemic.embed.minilm import _tokenizer

TEXTS = {
    "a sentence of 12 words": "She moved to Bergen in March and opened a bakery near the harbour.",
    "640 characters with accents": "I am thinking of adopting a dog since the café came to Zürich. "
    * 10,
    "a Chinese sentence of 23 characters": "我昨天去了上海博物馆,看到了很多古代的青铜器。",
}
LONG = {
    "10 MB of words": "word " * 2_000_000,
    "10 MB, one word": "a" * 10_000_000,
    "10 MB, a letter and its accents": "e" + "\u0301" * 5_000_000,
    "10 MB of ligatures": "\ufdfa" * 3_333_333,
}
MARKS = [chr(code) for code in range(0x300, 0x370)]
OTHERS = [
    *("[CLS]", "[SEP", "[MASK]", "##s", "\0", "\u200b", "\u00ad", "\ufffd", "é", "İ", "ß", "ﬁ"),
    *("각", "が", "\u3099", "\u212a", "豈", "😀", "\u0345"),
]
LENGTHS = ["x" * 100, "x" * 101, "é" * 100, "e\u0301" * 101]
SURROGATES = range(0xD800, 0xE000)
ROUNDS = 300


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, help="number of random texts to compare")
    parser.add_argument("--folder", type=Path, help="files whose lines are compared")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.random:
        compare(random_texts(arguments.random, random.Random(arguments.seed)))  # noqa: S311
    elif arguments.folder:
        compare(lines_in(arguments.folder))
    else:
        measure()


def load_own():
    return _tokenizer(mnemic_minilm.tokenizer_path(), mnemic_minilm.MAX_TOKENS)


def load_library():
    tokenizer = tokenizers.Tokenizer.from_file(str(mnemic_minilm.tokenizer_path()))
    tokenizer.no_padding()
    tokenizer.enable_truncation(mnemic_minilm.MAX_TOKENS)
    return tokenizer


def measure():
    times = in_turns({"own": load_own, "tokenizers": load_library}, 15)
    print(f"loading: {times['own'] * 1e3:.1f} ms, tokenizers {times['tokenizers'] * 1e3:.1f} ms")
    own, library = load_own(), load_library()
    for name, text in TEXTS.items():
        calls = {
            "own": lambda text=text: own.encode(text),
            "tokenizers": lambda text=text: library.encode(text),
        }
        times = in_turns(calls, ROUNDS)
        print(f"{name}: {times['own'] * 1e6:.1f} µs, tokenizers {times['tokenizers'] * 1e6:.1f} µs")
    for name, text in LONG.items():
        seconds = in_turns({"own": lambda text=text: own.encode(text)}, 3)["own"]
        print(f"{name}: {seconds * 1e3:.2f} ms")


def in_turns(calls, rounds):
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(each) for name, each in times.items()}


def random_texts(count, source):
    words = list(tokenizers.Tokenizer.get_vocab(load_library()))
    letters = sorted(set("".join(words)))
    kinds = [words, letters, MARKS, OTHERS, [" "], LENGTHS]
    for _ in range(count):
        parts = [random_part(kinds, source) for _ in range(source.randrange(1, 14))]
        text = "".join(parts) * (source.randrange(1, 80) if source.random() < 0.02 else 1)
        yield text.upper() if source.random() < 0.3 else text


def random_part(kinds, source):
    if source.random() < 0.85:
        return source.choice(source.choices(kinds, [6, 4, 3, 3, 4, 0.3])[0])
    code = source.randrange(0x110000)
    return "" if code in SURROGATES else chr(code)


def lines_in(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield from path.read_text(encoding="utf-8", errors="replace").splitlines()


def compare(texts):
    own, library = load_own(), load_library()
    number = 0
    for text in texts:
        number += 1
        ids, is_cut = own.encode(text)
        encoding = library.encode(text)
        seen = max(end for _, end in encoding.offsets) if encoding.overflowing else len(text)
        found = ids[0].tolist(), is_cut, own.characters_seen(text)
        assert found == (encoding.ids, bool(encoding.overflowing), seen), repr(text)
    print(f"{number} texts have the same tokens")


if __name__ == "__main__":
    main()
