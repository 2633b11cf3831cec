"""Plays a program against the package that is imported, and returns what is seen of it."""

import asyncio
import functools
import inspect
import io
import json
import random
import re
import sys
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np

import mnemic
from mnemic import compat, hyde, model, policy
from tests.recordings.tape import METRICS, Tape, whole
from tests.support.clock import NOON, Clock
from tests.support.embedders import WordEmbedder
from tests.support.windows import Words

SHELVES = (mnemic, model, policy, compat, hyde)
FLOORS = {"similarity_floor": 0.2, "score_floors": {"hybrid": 0.3, "semantic": 0.35}}


class ToldToFailError(Exception):
    """What scripted embedders and language models raise."""


class ScriptedEmbedder(WordEmbedder):
    """Takes down what it embeds, and fails when told to."""

    def __init__(self, tape, **attributes):
        super().__init__(32)
        self.tape, self.fails = tape, False
        vars(self).update(attributes)

    def embed(self, texts):
        self.tape.write("embedded", texts=list(texts))
        if self.fails:
            raise ToldToFailError("the embedder is told to fail")
        return super().embed(texts)


class AwaitedEmbedder(ScriptedEmbedder):
    async def embed(self, texts):
        return super().embed(texts)


class ApartEmbedder(ScriptedEmbedder):
    def embed_query(self, text):
        return super().embed([text])[0] + np.float32(0.05)


EMBEDDERS = {
    "words": ScriptedEmbedder,
    "floored": functools.partial(ScriptedEmbedder, **FLOORS),
    "chunked": functools.partial(ScriptedEmbedder, max_tokens=16),
    "awaited": functools.partial(AwaitedEmbedder, **FLOORS),
    "apart": ApartEmbedder,
}


class ScriptedModel:
    """Answers by lines of the prompt, which it takes down, and fails when told to."""

    model = "scripted"

    def __init__(self, tape):
        self.tape, self.fails = tape, False

    def complete(self, prompt, *, system=None):
        self.tape.write("prompt", prompt=prompt, system=system)
        if self.fails:
            raise ToldToFailError("the model is told to fail")
        words = re.findall(r"\w{3,}", prompt)[-12:] or ["nothing"]
        return "\n".join(f"{number}. {' '.join(words[number::3])}." for number in range(4))


def played(program):
    """Return the lines of a program."""
    tape = Tape()
    with tape.running():
        _Player(program, tape).play()
    return tape.lines


class _Player:
    def __init__(self, program, tape):
        self.program, self.tape = program, tape
        self.setup = program["setup"]
        self.loop = asyncio.new_event_loop() if self.setup["is_awaited"] else None
        self.clock = Clock()
        self.random = random.Random(program["name"])  # noqa: S311 - no secrets
        self.stored, self.items, self.made, self.named = [], [], {}, None
        self.model = ScriptedModel(tape)
        name = self.setup["embedder"]
        self.embedder = EMBEDDERS[name](tape) if name in EMBEDDERS else name

    def play(self):
        try:
            memory = self.made["memory"] = self.opened()
            for number, step in enumerate(self.program["steps"]):
                self.tape.write("step", number=number, call=f"{step['on']}.{step['call']}")
                self.step(step)
            self.tape.write("step", number=-1, call="the end")
            self.at_end(memory)
        finally:
            for name in ("hyde", "memory"):
                if name in self.made:
                    self.result(self.made[name].close())
            if self.loop is not None:
                self.loop.run_until_complete(self.loop.shutdown_default_executor())
                self.loop.close()

    def opened(self):
        options = {**self.setup["options"], "clock": self.clock, "id_factory": self.next_id}
        if self.setup["is_sealed"]:
            options["encryption"] = mnemic.Encryption(b"k" * 32)
        if self.setup["opens"] == "Memory":
            expander = self.setup["expander"]
            options["expander"] = self.expanded if expander == "function" else expander
        kind = self.form(self.setup["opens"])
        opened = kind(":memory:", agent_id="aide", embedder=self.embedder, **options)
        self.tape.listen(opened.events)
        if self.setup["opens"] == "Memory":
            return opened
        self.made["long term"] = opened
        return opened.memory

    def form(self, name):
        return _named(name if self.loop is None else f"Async{name}")

    def next_id(self, _now):
        return UUID(int=self.random.getrandbits(128), version=4)

    def expanded(self, query):
        if self.model.fails:
            raise ToldToFailError("the expander is told to fail")
        return [f"{query} too", "harbour"]

    def object(self, name):
        if name not in self.made:
            self.made[name] = self.service(name)
        return self.made[name]

    def service(self, name):
        memory, setup, seconds = self.made["memory"], self.setup, self.seconds
        if name == "service":
            return self.form("RetrievalService")(memory, **setup["service"])
        if name == "retriever":
            options = model.MemoryRetrieverOptions(**setup["retriever"])
            return self.form("MemoryRetriever")(memory, options)
        if name == "window":
            given = {"clock": self.clock, "id_factory": self.next_id, "counter": Words()}
            return compat.ContextWindow(**setup["window"], **given, summarizer=_summary)
        if name == "hyde":
            config = hyde.HydeConfig.from_dict(setup["hyde"])
            engine = self.form("HydeEngine")(memory, self.embedder, self.model, config)
            engine.start()
            self.result(engine.ready(60))
            return engine
        config = policy.RetrievalConfig.from_dict(setup["policies"][int(name[-1])])
        limiters = {
            "window": policy.FixedWindow(3, 60, clock=seconds),
            "bucket": policy.TokenBucket(0.1, 3, clock=seconds),
        }
        return self.form("RetrievalPolicy")(
            memory,
            config,
            limiter=limiters.get(setup["limiter"]),
            breaker=policy.CircuitBreaker(1, 60, clock=seconds),
            clock=seconds,
        )

    def seconds(self):
        return (self.clock.now - NOON).total_seconds()

    def result(self, value):
        return self.loop.run_until_complete(value) if inspect.isawaitable(value) else value

    def step(self, step):
        # A filter by accesses writes them; else what a step shows depends on when a thread does.
        accessed = {"access_count": {"gte": 1}}
        self.result(self.made["memory"].count(filters=accessed, all_users=True))
        try:
            answer = self.answer(step)
        except Exception as error:  # noqa: BLE001 - an answer like any other
            answer = error
        self.tape.write("answer", answer=answer)

    def answer(self, step):
        on, call = step["on"], step["call"]
        if on == "together":
            return self.together(step["args"])
        self.named = None
        args, named = self.given(step["args"]), self.given(step["named"])
        if on == "packing":
            return self.packing(call, args, named)
        own = getattr(self, f"{on}_{call}", None)
        answer = self.result((own or getattr(self.object(on), call))(*args, **named))
        if (on, call) in (("memory", "add"), ("memory", "add_many")):
            self.stored += answer if call == "add_many" else [answer]
        if on == "window" and isinstance(answer, compat.ContextItem):
            self.items.append(answer.id)
        return answer

    def given(self, value):
        """Return a value with what its marks stand for."""
        if isinstance(value, list):
            return [self.given(item) for item in value]
        if not isinstance(value, dict):
            return value
        mark = next(iter(value), "")
        if mark.startswith("$") and mark != "$":
            return getattr(self, f"named_{mark[1:]}")(value[mark])
        fields = {name: self.given(item) for name, item in value.items() if name != "$"}
        return _named(value["$"])(**fields) if mark == "$" else fields

    def named_id(self, at):
        if not self.stored:
            return UUID(int=1)
        self.named = self.stored[at % len(self.stored)]
        return self.named.id

    def named_user(self, _owner):
        return self.named and self.named.user_id

    def named_item(self, at):
        return self.items[at % len(self.items)] if self.items else "none"

    named_time = staticmethod(datetime.fromisoformat)

    def named_object(self, name):
        return self.object(name)

    def world_wait(self, seconds):
        self.clock.now += timedelta(seconds=seconds)

    def world_embedder(self, fails):
        if isinstance(self.embedder, ScriptedEmbedder):
            self.embedder.fails = bool(fails)

    def world_model(self, fails):
        self.model.fails = bool(fails)

    def world_export(self):
        out = io.StringIO()
        memory, is_sealed = self.object("memory"), self.setup["is_sealed"]
        self.result(memory.export(out, all_users=True, **({"unseal": True} if is_sealed else {})))
        return out.getvalue().splitlines()

    def together(self, steps):
        """Make calls at once where they are awaited.

        Who comes first is of no account, and neither is who waits for the vector of another one.
        """
        if self.loop is None:
            return [self.answer(step) for step in steps]
        self.object(steps[0]["on"])
        calls = [self.started(step) for step in steps]

        async def gathered():
            return await asyncio.gather(*calls, return_exceptions=True)

        at = len(self.tape.lines)
        answers = self.loop.run_until_complete(gathered())
        lines = [line for line in self.tape.lines[at:] if not _is_of_embedder(line)]
        self.tape.lines[at:] = sorted(lines, key=repr)
        return sorted(map(whole, answers), key=repr)

    def started(self, step):
        args, named = self.given(step["args"]), self.given(step["named"])
        if step["on"] == "hyde":
            return self.object("hyde").turn(*args, **named).retrieve()
        return getattr(self.object(step["on"]), step["call"])(*args, **named)

    def hyde_turn(self, *args, **named):
        if self.embedder is None:
            return None
        turn = self.object("hyde").turn(*args, **named)
        memories = self.result(turn.retrieve())
        return [turn.window, memories, turn.text, turn.system_prompt("Be brief.")]

    def packing(self, call, args, named):
        """Take the stored memories, some of equal scores, through one step to a prompt."""
        scored = [(entry, number % 3 / 4) for number, entry in enumerate(self.stored)]
        memories = policy.PayloadMemory.of(scored)
        if call == "redact":
            args = [policy.Redaction(enabled=True, patterns=tuple(policy.KNOWN_PATTERNS))]
        if call in ("redact", "clip"):
            return [getattr(policy, call)(each.content, *args) for each in memories]
        if call == "enforce_budget":  # by words, some of many budgets are exactly met
            budgets = range(args[0], args[0] + 20)
            counters = {}, {"counter": Words()}
            return [
                policy.enforce_budget(memories, budget, **counter)
                for budget in budgets
                for counter in counters
            ]
        return getattr(policy, call)(memories, *args, **named)

    def at_end(self, memory):
        """Take down what is stored then, all statistics, and the gauges."""
        listed = {"include_deleted": True, "limit": 1000, "embeddings": True}
        for call, named in (("stats", {}), ("users", None), ("list", listed)):
            whose = {} if named is None else {"all_users": True, **named}
            self.step({"on": "memory", "call": call, "args": [], "named": whose})
        self.step({"on": "world", "call": "export", "args": [], "named": {}})
        for name, made in sorted(self.made.items()):
            stats = getattr(made, "get_stats", None) or getattr(made, "stats", None)
            if stats is not None and name != "memory":
                self.tape.write("stats", of=name, answer=self.result(stats()))
        self.tape.write("stats", of="retrieve", answer=self.result(memory.retrieval_stats()))
        METRICS.read_gauges()


def _named(name):
    return next(getattr(shelf, name) for shelf in SHELVES if name in dir(shelf))


def _summary(texts):
    return f"Summary of {len(texts)}."


def _is_of_embedder(line):
    return line["kind"] == "embedded" or line.get("name", "").endswith("embedding_time_ms")


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(played(json.loads(line))), flush=True)
