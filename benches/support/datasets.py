"""The vectors that the benchmarks search: real, clustered and uniform, the same on every run."""

import hashlib
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np

from benches.support.sentences import sentences

CACHE = Path(__file__).parents[2] / "target" / "bench-data"
DIM = 384
HELD_OUT = 1_000
MOST_EMBEDDED = 30_000
AT_ONCE = 500
REPORTED = 5.0  # seconds between two lines of progress
FILLED_AT_ONCE = 10_000
# Past the embedded sentences a row is the unit vector of a + s * (b - c) + noise, of sentences a, b
# and c: the mean and the shape of the spread stay those of the sentences. Checked with the held-out
# queries against 30,000 sentences of Python 3.11 and numpy 2.4.6, searched 1,000, 10,000 and 30,000
# at a time, then filled up:
#
# rows                              1,000   10,000   30,000   100,000   1,000,000
# mean tenth-best score              .368     .503     .562      .595        .675
# rows within .05 below it (median)    13       16       17        19          37
#
# .627 and .75 would continue the line of the sentences alone: filled sets are a little harder. Of
# the variance, the first 32, 64, 128 and 256 principal components hold .472, .637, .817, .969 for
# the sentences and .466, .631, .812, .967 for the filled-in rows. Narrower shifts make near copies
# of each sentence at a million rows; wider ones and more noise move the answers out of reach.
SHIFT = (0.2, 0.6)
NOISE = 0.1


def rows_of(kind, count, dim=DIM, seed=0):
    """Return unit rows, shape (count, dim), float32.

    "real" are sentence embeddings, filled up past their number; "clustered" is noise around a
    hundredth as many centres; "uniform" are independent directions.
    """
    if kind == "real":
        return real_rows(count, dim, seed)
    random = np.random.default_rng(seed)
    rows = random.standard_normal((count, dim), dtype=np.float32)
    if kind == "clustered":
        centres = random.standard_normal((max(8, count // 100), dim), dtype=np.float32)
        rows *= np.float32(0.7)
        rows += centres[random.integers(0, len(centres), count)]
    elif kind != "uniform":
        raise ValueError(f"no such kind of rows: {kind}")
    return unit(rows)


def queries_of(kind, rows, count=64, seed=1):
    """Return unit queries, shape (count, dim): held-out sentences, or rows with a little noise."""
    if kind == "real":
        return real_embeddings()[0][:count]
    random = np.random.default_rng(seed)
    near = rows[random.integers(0, len(rows), count)]
    return unit(near + 0.03 * random.standard_normal(near.shape, dtype=np.float32))


def real_rows(count, dim, seed):
    """Return the embedded sentences, then mixtures of them; fewer rows are a prefix of more."""
    _, embedded = real_embeddings()
    if dim != embedded.shape[1]:
        raise ValueError(f"real rows have {embedded.shape[1]} components, not {dim}")
    rows = np.empty((count, dim), np.float32)
    rows[: len(embedded)] = embedded[:count]
    for first in range(len(embedded), count, FILLED_AT_ONCE):
        mixed = mixtures(embedded, np.random.default_rng([seed, first]))
        rows[first : first + FILLED_AT_ONCE] = mixed[: count - first]
    return rows


def mixtures(embedded, random):
    chosen, plus, minus = embedded[random.integers(0, len(embedded), (3, FILLED_AT_ONCE))]
    shift = random.uniform(*SHIFT, (FILLED_AT_ONCE, 1)).astype(np.float32)
    noise = random.standard_normal(chosen.shape, dtype=np.float32)
    return unit(
        chosen + shift * (plus - minus) + np.float32(NOISE / chosen.shape[1] ** 0.5) * noise
    )


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def real_texts():
    """Return the sentences in a random order; the first `HELD_OUT` are the queries."""
    program = Path(__file__).with_name("sentences.py").read_bytes()
    key = hashlib.sha256(program + platform.python_version().encode() + np.__version__.encode())
    path = CACHE / f"sentences-{key.hexdigest()[:16]}.txt"
    if not path.exists():
        report("gathering sentences from the standard library and numpy, about half a minute")
        found = sentences(report)
        order = np.random.default_rng(0).permutation(len(found))[: HELD_OUT + MOST_EMBEDDED]
        CACHE.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(found[at] for at in order), encoding="utf-8")
    return path.read_text(encoding="utf-8").split("\n")


def real_embeddings():
    """Return MiniLM's vectors of the real sentences: the held-out queries, and the rows."""
    from mnemic.embed import MiniLmEmbedder  # noqa: PLC0415 - only real vectors need the model

    texts = real_texts()
    embedder = MiniLmEmbedder(threads=os.cpu_count() or 1)
    key = hashlib.sha256("\n".join([embedder.model, *texts]).encode())
    path = CACHE / f"embeddings-{key.hexdigest()[:16]}.npy"
    if not path.exists():
        np.save(path, embed(embedder, texts))
    vectors = np.load(path)
    return vectors[:HELD_OUT], vectors[HELD_OUT:]


def embed(embedder, texts):
    vectors = np.empty((len(texts), embedder.dimensions), np.float32)
    begin = shown = time.monotonic()
    report(
        f"embedding {len(texts):,} sentences, a minute or two for 30,000; stored in {CACHE.name}"
    )
    for first in range(0, len(texts), AT_ONCE):
        vectors[first : first + AT_ONCE] = embedder.embed(texts[first : first + AT_ONCE])
        done, now = min(first + AT_ONCE, len(texts)), time.monotonic()
        if now - shown >= REPORTED or done == len(texts):
            shown, left = now, (now - begin) / done * (len(texts) - done)
            report(f"embedded {done:,} of {len(texts):,} sentences, about {left:.0f} s left")
    return vectors


def report(line):
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    report("real sentences: {} held out, {} to search".format(*map(len, real_embeddings())))
