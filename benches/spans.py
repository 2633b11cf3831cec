"""What spans cost a search: `python -m benches.spans`.

Searches of one memory take turns without OpenTelemetry and with its API alone; then an SDK keeps
every span. The figures are medians of rounds, and their ratios to the first.
"""

import argparse
import statistics
import sys
import time

import opentelemetry.trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mnemic import Memory

API = opentelemetry.trace.__name__
MEMORIES = 500
SEARCHES = 40


def provider():
    exporter = InMemorySpanExporter()
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made, exporter


def microseconds(memory, at):
    begun = time.perf_counter()
    for number in range(SEARCHES):
        memory.search(f"number {at * SEARCHES + number}", limit=5)
    return (time.perf_counter() - begun) / SEARCHES * 1e6


def main():
    parser = argparse.ArgumentParser(prog="python -m benches.spans", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    api = sys.modules[API]
    own, exporter = provider()
    taken = {"without": [], "API alone": [], "SDK": []}
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many([f"memory number {at} of the garden" for at in range(MEMORIES)])
        for at in range(rounds):
            for name in sorted(("without", "API alone"), reverse=at % 2):
                if name == "without":
                    del sys.modules[API]
                taken[name].append(microseconds(memory, at))
                sys.modules[API] = api
        opentelemetry.trace.set_tracer_provider(own)
        for at in range(rounds):
            taken["SDK"].append(microseconds(memory, at))
            exporter.clear()
    least = statistics.median(taken["without"])
    for name, times in taken.items():
        pairs = zip(times, taken["without"], strict=True)
        ratio = statistics.median(one / other for one, other in pairs)
        print(f"{name:10} {statistics.median(times):8.1f} µs a search, {ratio:.3f} of {least:.1f}")


if __name__ == "__main__":
    main()
