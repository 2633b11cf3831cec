"""Speed of the default embedder, and the measurement behind its similarity floor.

python -m benches.embed               speed
python -m benches.embed --calibrate   cosines of related and unrelated sentences
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

from mnemic.embed import MiniLmEmbedder

SHORT = "She moved to Bergen in March and opened a bakery."
LENGTHS = {
    "4 words, 7 tokens": "She opened a bakery.",
    "8 words, 10 tokens": "The user prefers dark mode in all editors",
    "10 words, 13 tokens": SHORT,
    "40 words, 46 tokens": " ".join([SHORT] * 4),
}
RUNS = 1000
WARM_UP = 50
PAIRS = Path(__file__).with_name("embed_pairs.json")
COLD = (
    "from mnemic.embed import MiniLmEmbedder; import time; start = time.perf_counter();"
    "MiniLmEmbedder().embed(['text']); print(time.perf_counter() - start)"
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calibrate", action="store_true", help="measure cosines, not speed")
    if parser.parse_args().calibrate:
        calibrate()
    else:
        measure_speed()


def measure_speed():
    embedder = MiniLmEmbedder()
    print(f"{embedder.model}, 1 thread, onnxruntime {onnxruntime.__version__}, {cpu()}")
    for name, text in LENGTHS.items():
        print(f"{name}: {latency(embedder, text)}")
    print(f"500 short texts in one call: {throughput(embedder):.0f} texts/s")
    starts = sorted(cold_start() for _ in range(5))
    print(f"cold start (libraries, model, first text): {starts[2] * 1e3:.0f} ms, median of 5")


def latency(embedder, text):
    """Time one text a call."""
    expected = embedder.embed([text]).tobytes()
    times = []
    for _ in range(WARM_UP + RUNS):
        start, start_cpu = time.perf_counter(), time.thread_time()
        vector = embedder.embed([text])
        times.append((time.perf_counter() - start, time.thread_time() - start_cpu))
        assert vector.tobytes() == expected
    wall, busy = np.transpose(times[WARM_UP:]) * 1e3
    low, p50, p95 = np.percentile(wall, [0, 50, 95])
    return (
        f"p50 {p50:.2f} ms, p95 {p95:.2f} ms, fastest {low:.2f} ms; "
        f"of the thread's own time p50 {np.median(busy):.2f} ms"
    )


def throughput(embedder):
    """Return the texts a second of one call with 500 different short texts."""
    texts = [f"{SHORT[:-1]} number {number}." for number in range(500)]
    start = time.perf_counter()
    vectors = embedder.embed(texts)
    seconds = time.perf_counter() - start
    assert vectors.shape == (500, 384)
    return len(texts) / seconds


def cold_start():
    """Return the seconds a fresh process needs for its first vector."""
    command = [sys.executable, "-c", COLD]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603


def cpu():
    """Name the processor and the integer instructions that decide the speed."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    facts = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    flags = facts.get("flags", "").split()
    level = next((name for name in ("avx512_vnni", "avx_vnni", "avx2") if name in flags), "no avx2")
    return f"{facts.get('model name', platform.machine())} with {level}"


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
