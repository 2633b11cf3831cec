"""The retrieval policy: its steps, a whole run, redaction, sentences."""

from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from benches.asv import Timed
from benches.policy import PLAN, TOP_K, configuration, filled, run_of
from benches.policy_texts import candidates, paragraphs
from mnemic._core import sentences
from mnemic.policy import KNOWN_PATTERNS, Redaction, RetrievalPolicy, pack, redact

ROWS = 5_000
DEFAULT = Redaction(enabled=True)
ALL = Redaction(enabled=True, patterns=tuple(KNOWN_PATTERNS))
numbers = count()
found = cache(candidates)


@cache
def megabyte():
    return "\n".join(paragraphs(500)) + "\nMail ann@example.com."


@cache
def policy():
    """Return a policy over a file of this process alone, in the folder that asv removes."""
    memory = filled(Path(mkdtemp(dir=".")) / "runs.db", ROWS)
    return RetrievalPolicy(memory, configuration())


class Steps(Timed):
    params = (40, 1_000)
    param_names = ("candidates",)

    def time_pack(self, candidates):
        assert len(pack(found(candidates), PLAN).kept) == TOP_K

    def peakmem_pack(self, candidates):
        pack(found(candidates), PLAN)


class Policy(Timed):
    def time_run(self):
        payload = run_of(policy())(f"the ferry of the harbour {next(numbers)}")
        assert len(payload.memories) == TOP_K

    def time_redaction_of_a_megabyte(self):
        assert redact(megabyte(), DEFAULT).endswith("Mail [REDACTED].")

    def time_redaction_by_all_patterns(self):
        assert redact(megabyte(), ALL).endswith("Mail [REDACTED].")

    def time_sentences_of_a_megabyte(self):
        assert len(sentences(megabyte())) > 10_000
