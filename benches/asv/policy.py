"""The retrieval policy: its steps, a whole run, redaction, sentences."""

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from benches.asv import Timed
from benches.support.datasets import real_texts
from benches.support.memories import StoredVectors
from mnemic import Memory
from mnemic._core import sentences
from mnemic.policy import (
    INTERLEAVED,
    KNOWN_PATTERNS,
    PackingPlan,
    PayloadMemory,
    Provenance,
    Redaction,
    RetrievalPolicy,
    RetrievalRequest,
    pack,
    redact,
)

ROWS = 5_000
TOP_K = 8
SENTENCES = 20
DUPLICATES = 10
PLAN = PackingPlan(limit=TOP_K, clip_sentences=2, max_tokens=1_500)
DEFAULT = Redaction(enabled=True)
ALL = Redaction(enabled=True, patterns=tuple(KNOWN_PATTERNS))
numbers = count()


@cache
def paragraphs(number):
    """Return texts of twenty real sentences, about 2 kB."""
    texts = real_texts()
    firsts = (SENTENCES * at % len(texts) for at in range(number))
    return [f"{at}: {' '.join(texts[at : at + SENTENCES])}" for at in firsts]


@cache
def candidates(number):
    """Return found memories, best first; a tenth of them repeat another in capitals."""
    texts = paragraphs(number)
    repeated = range(DUPLICATES - 1, number, DUPLICATES)
    texts = [texts[at - 1].upper() if at in repeated else texts[at] for at in range(number)]
    return [
        PayloadMemory(
            id=f"memory-{at}",
            content=text,
            timestamp=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=at * 7919 % number),
            score=1 / (1 + at / 100),
            type="message",
            role="user",
            provenance=Provenance(collection="user:alice", search_type="hybrid"),
        )
        for at, text in enumerate(texts)
    ]


@cache
def megabyte():
    return "\n".join(paragraphs(500)) + "\nMail ann@example.com."


@cache
def policy():
    """Return a policy over a file of this process alone, in the folder that asv removes."""
    memory = Memory(Path(mkdtemp(dir=".")) / "runs.db", embedder=StoredVectors(ROWS), query_cache=0)
    memory.add_many(
        {"content": f"{text[:400]} {at}", "user_id": f"user {at % 10}"}
        for at, text in enumerate(paragraphs(ROWS))
    )
    # Without a floor: random vectors are near to nothing.
    return RetrievalPolicy(memory, INTERLEAVED.overridden(min_score=0.0, cache_ttl=0, timeout=None))


class Steps(Timed):
    params = (40, 1_000)
    param_names = ("candidates",)

    def time_pack(self, number):
        packed = pack(candidates(number), PLAN)
        assert len(packed.kept) == TOP_K
        repeated = sum(one.step == "deduplicate" for one in packed.dropped)
        assert repeated == number // DUPLICATES

    def peakmem_pack(self, number):
        pack(candidates(number), PLAN)


class Policy(Timed):
    def time_run(self):
        question = f"did the ferry reach the harbour {next(numbers)}"
        payload = policy().run(RetrievalRequest(question, "user 3", "a session"))
        assert len(payload.memories) == TOP_K

    def time_redaction_of_a_megabyte(self):
        assert redact(megabyte(), DEFAULT).endswith("Mail [REDACTED].")

    def time_redaction_by_all_patterns(self):
        assert redact(megabyte(), ALL).endswith("Mail [REDACTED].")

    def time_sentences_of_a_megabyte(self):
        assert len(sentences(megabyte())) > 5_000
