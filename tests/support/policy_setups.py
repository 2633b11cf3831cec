"""Policies over memories whose texts name their scores."""

import re
from contextlib import contextmanager

import numpy as np

from mnemic import Memory
from mnemic.policy import INTERLEAVED, RetrievalPolicy, RetrievalRequest
from tests.support.clock import NOON, SECOND, Clock

SCORE = re.compile(r"score (\d\.\d+)")


class ScoredEmbedder:
    """Gives a text with `score 0.7` in it a similarity of .7 to any text without a score."""

    model, dimensions, max_tokens, similarity_floor = "scored", 2, None, None

    def embed(self, texts):
        return np.array([self.vector(text) for text in texts], dtype=np.float32)

    def vector(self, text):
        found = SCORE.search(text)
        score = float(found[1]) if found else 1.0
        return [score, (1 - score * score) ** 0.5]


def asked(message="what about tea", user="alice", session="s-1", **fields):
    """Return a request."""
    return RetrievalRequest(message=message, user_id=user, session_id=session, **fields)


@contextmanager
def policy_over(entries, **options):
    """Open a memory with entries, each a content with its fields; yield it and its policy."""
    with Memory(":memory:", embedder=ScoredEmbedder(), clock=Clock()) as memory:
        for number, (content, fields) in enumerate(entries):
            given = {"user_id": "alice", "session_id": "s-1", "type": "fact"}
            created_at = NOON - (1000 - number) * SECOND
            memory.add(content, **{"created_at": created_at, **given, **fields})
        config = INTERLEAVED.overridden(**{"search_type": "semantic", **options})
        yield memory, RetrievalPolicy(memory, config)
