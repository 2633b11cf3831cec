"""The retrieval policy: its steps over found memories, whole runs, redaction, sentences."""

import pytest

from benches.policy import PLAN, TOP_K, configuration, filled, questions, run_of
from benches.policy_texts import candidates, distinct, paragraphs
from mnemic._core import sentences
from mnemic.policy import KNOWN_PATTERNS, Redaction, RetrievalPolicy, pack, redact

TEXTS = paragraphs(500)
ROWS = 10_000
REDACTIONS = {
    "the three default patterns": Redaction(enabled=True),
    "all known patterns": Redaction(enabled=True, patterns=tuple(KNOWN_PATTERNS)),
}


@pytest.mark.parametrize("count", [40, 1_000])
def test_the_steps(count, measure):
    memories = candidates(count)
    packed = pack(memories, PLAN)
    assert len(packed.kept) == TOP_K
    assert sum(one.step == "deduplicate" for one in packed.dropped) == count - distinct(count)
    measure(f"{count:,} candidates of 2 kB", "pack", lambda given: pack(given, PLAN), [memories])


def test_a_run(tmp_path, measure):
    with filled(tmp_path / "runs.db", ROWS) as memory:
        run = run_of(RetrievalPolicy(memory, configuration()))
        assert len(run(questions()[0]).memories) == TOP_K
        group = f"a run without the embedding, of a user's {ROWS // 10:,} among {ROWS:,}"
        measure(group, "RetrievalPolicy.run", run, questions())


@pytest.mark.parametrize("name", REDACTIONS)
def test_a_redaction(name, measure):
    redaction = REDACTIONS[name]
    texts = [f"{text} Mail ann@example.com." for text in TEXTS]
    assert all(redact(text, redaction).endswith("Mail [REDACTED].") for text in texts)
    measure("redaction of 2 kB", name, lambda text: redact(text, redaction), texts)


def test_a_splitting_into_sentences(measure):
    found = [sentences(text) for text in TEXTS]
    assert all(len(spans) > 10 for spans in found)
    assert all(
        text[start:end].strip()
        for text, spans in zip(TEXTS, found, strict=True)
        for start, end in spans
    )
    measure("sentences of 2 kB", "sentences", sentences, TEXTS)
