"""The retrieval policy beside its goals: `python -m benches.policy [PART …]`.

    steps       the steps over 40 and 1,000 candidates of 2 kB, together and one by one
    memory      extra memory of one such request, and its growth over many
    runs        whole runs over 10,000 memories of 10 users, and their part outside the search
    redaction   1 MB by the known patterns, beside Python's `re`; patterns built to be slow
    sentences   the splitter beside others; needs pysbd and cargo

Each line has the goal and the figure that was seen. Answers are checked, times are not. Embedding
is left out: vectors are looked up. Calls that are compared take turns in one process. `--cpu`
counts processor time, for a busy machine.
"""

import argparse
import gc
import itertools
import tempfile
import time
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benches import environment, redaction
from benches.memory import StoredVectors
from benches.policy_texts import candidates, distinct, paragraphs
from benches.ranking import resident_bytes
from mnemic import Memory
from mnemic.policy import (
    Plan,
    Redaction,
    RetrievalConfig,
    RetrievalPolicy,
    RetrievalRequest,
    clip,
    deduplicate,
    enforce_budget,
    format_for_system_prompt,
    interleave,
    pack,
)

ROUNDS = 300
FEW, MANY = 40, 1_000
MEASURED = ("pack: all steps in one", "pack, ASCII alone")
GOALS = {FEW: "≤ .5 ms (documented limit 50)", MANY: "≤ 10 ms"}
TOP_K, MAX_TOKENS = 8, 1_500
PLAN = Plan(limit=TOP_K, clip_sentences=2, max_tokens=MAX_TOKENS)
REDACTING = Plan(
    limit=TOP_K, clip_sentences=2, max_tokens=MAX_TOKENS, redaction=Redaction(enabled=True)
)
ROWS, USERS, CONTENT_LENGTH = 10_000, 10, 400
USER = "user 3"
RUN, CONTEXT = "RetrievalPolicy.run", "Memory.context of 1,500 tokens"
GOAL_OF_RUNS = "200 ms documented"
WARM_UP, REQUESTS = 500, 3_000


class Clock:
    """Seconds, by the clock on the wall or by this thread's work."""

    now = staticmethod(time.perf_counter)


clock = Clock()


def timed(call, *arguments):
    """Return the seconds that a call took, and its result."""
    begun = clock.now()
    result = call(*arguments)
    return clock.now() - begun, result


def in_turns(calls, arguments):
    """Let every call take each argument in turn; return the seconds of each."""
    times = {name: [] for name in calls}
    for argument, (name, call) in itertools.product(arguments, calls.items()):
        times[name].append(timed(call, argument)[0])
    return times


def show(name, goal, seen):
    """Print a figure beside its goal."""
    print(f"{name:56} {goal:30} {seen}", flush=True)


def milliseconds(seconds):
    """Return median and 95th percentile as a text."""
    median, p95 = np.quantile(np.array(seconds) * 1e3, [0.5, 0.95])
    return f"p50 {median:8.3f} ms   p95 {p95:8.3f} ms"


# The steps


def measure_steps():
    for count in (FEW, MANY):
        memories = candidates(count)
        plain = in_ascii(memories)
        check(memories)
        check(plain)
        calls = {
            "pack: all steps in one": lambda given: pack(given, PLAN),
            "pack with the three default patterns": lambda given: pack(given, REDACTING),
            "the functions one after the other": step_by_step,
            "pack, ASCII alone": lambda _, plain=plain: pack(plain, PLAN),
        }
        goals = dict.fromkeys(calls, "") | dict.fromkeys(MEASURED, GOALS[count])
        for name, seconds in in_turns(calls, [memories] * ROUNDS).items():
            show(f"{name}, {count:,} x 2 kB", goals[name], milliseconds(seconds))


def in_ascii(memories):
    """Return the memories without the ellipses, whose characters alone are not ASCII."""
    return [memory.with_content(memory.content.replace("…", ".")) for memory in memories]


def step_by_step(memories):
    """Run the steps as single functions: what a program of its own would write."""
    chosen = interleave(deduplicate(memories), TOP_K)
    clipped = [memory.with_content(clip(memory.content, 2)) for memory in chosen]
    return format_for_system_prompt(enforce_budget(clipped, MAX_TOKENS))


def check(memories):
    packed = pack(memories, PLAN)
    assert len(packed.kept) == TOP_K
    assert 0 < packed.tokens <= MAX_TOKENS
    assert len(packed.kept) + len(packed.dropped) == len(memories)
    repeated = [one for one in packed.dropped if one.step == "deduplicate"]
    assert len(repeated) == len(memories) - distinct(len(memories))
    assert pack(memories, PLAN) == packed


# Memory


def measure_memory():
    memories = candidates(FEW)
    pack(memories, PLAN)
    peak = peak_of(lambda: pack(memories, PLAN))
    show(f"extra memory of a request, Python, {FEW} x 2 kB", "≤ 1 MB", f"{peak / 1e3:,.0f} kB")
    growth = growth_over(lambda: pack(memories, REDACTING))
    label = f"growth of the process over {REQUESTS:,} requests"
    show(label, "none that stays", f"{growth / 1e3:,.0f} kB, {growth / REQUESTS:,.0f} bytes each")


def peak_of(call):
    """Return the largest number of bytes that a call held at once, the core's left out."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - before


def growth_over(call):
    """Return the bytes by which the process grows over many calls, after some."""
    for _ in range(WARM_UP):
        call()
    before, _ = resident_bytes()
    for _ in range(REQUESTS):
        call()
    return resident_bytes()[0] - before


# Whole runs


def measure_runs():
    with tempfile.TemporaryDirectory() as folder, filled(Path(folder) / "runs.db", ROWS) as memory:
        calls = calls_of(memory)
        check_runs(calls)
        with timed_search(memory) as searching:
            times, outside = {name: [] for name in calls}, {name: [] for name in calls}
            for question, (name, call) in itertools.product(questions(), calls.items()):
                searching.clear()
                took, _ = timed(call, question)
                times[name].append(took)
                outside[name].append(took - sum(searching))
    for name in calls:
        show(f"{name}, {ROWS:,} memories", GOAL_OF_RUNS, milliseconds(times[name]))
        show("    of it outside the search", "", milliseconds(outside[name]))


def calls_of(memory):
    """Return the compared calls, by name."""
    policies = {
        RUN: RetrievalPolicy(memory, configuration()),
        f"{RUN}, redacting": RetrievalPolicy(
            memory, configuration(redaction=Redaction(enabled=True))
        ),
    }
    return {name: run_of(policy) for name, policy in policies.items()} | {
        CONTEXT: lambda text: memory.context(
            text, max_tokens=MAX_TOKENS, min_score=None, user_id=USER
        )
    }


def filled(path, rows):
    """Return a memory of ten users' paragraphs, with vectors that nothing has to compute."""
    # Without a query cache, so that the first call of a question does not work for the others.
    memory = Memory(path, embedder=StoredVectors(rows), query_cache=0)
    texts = paragraphs(rows, CONTENT_LENGTH)
    memory.add_many(
        {"content": f"{text} {at}", "user_id": f"user {at % USERS}"}
        for at, text in enumerate(texts)
    )
    return memory


@contextmanager
def timed_search(memory):
    """Lend a list of the seconds of each search, from its start to the entries that it found."""
    finder, seconds = memory.repository.finder, []
    find = finder.find

    def timed_find(*given, **named):
        took, found = timed(lambda: find(*given, **named))
        seconds.append(took)
        return found

    finder.find = timed_find
    yield seconds
    finder.find = find


def configuration(**options):
    """Return the documented configuration without a floor: random vectors are near to nothing."""
    return RetrievalConfig(min_score=0.0, cache_ttl=0, timeout=None, **options)


def run_of(policy):
    return lambda text: policy.run(RetrievalRequest(text, USER, "a session"))


def questions():
    """Return questions that end with the number of a vector."""
    return [f"did the ferry reach the harbour {number}" for number in range(ROUNDS)]


def check_runs(calls):
    question = questions()[7]
    payload = calls[RUN](question)
    assert payload.metadata.error is None
    assert payload.metadata.total_results == 2 * TOP_K
    assert len(payload.memories) == TOP_K
    assert 0 < payload.metadata.total_tokens <= MAX_TOKENS
    assert 0 < calls[CONTEXT](question).tokens <= MAX_TOKENS


# Redaction and sentences: the figures of their own benchmarks


def measure_redaction():
    for kind, sentence in redaction.TEXTS.items():
        default, every, peer = redaction.throughputs(redaction.sample(sentence))
        seen = f"{default:.0f} MB/s; re {peer:.0f}"
        show(f"redaction of 1 MB, three default patterns, {kind}", "≥ 100 MB/s", seen)
        show(f"redaction of 1 MB, all patterns, {kind}", "≥ 40 MB/s", f"{every:.0f} MB/s")
    for pattern, letter in redaction.HOSTILE.items():
        took, kind = redaction.answer(pattern, letter)
        show(f"{pattern} on 100 kB of {letter}", "≤ 50 ms", f"{took:.1f} ms: {kind}")


def measure_sentences():
    from benches import sentences_peers  # noqa: PLC0415 - pysbd is not always there

    sentences_peers.main()


PARTS = {
    "steps": measure_steps,
    "memory": measure_memory,
    "runs": measure_runs,
    "redaction": measure_redaction,
    "sentences": measure_sentences,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--cpu", action="store_true", help="processor time, on a busy machine")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    environment.restart_at_their_best()
    clock.now = time.thread_time if given.cpu else time.perf_counter
    print(environment.title(environment.machine()))
    for part in given.parts or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
