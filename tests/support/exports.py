"""Memories of tests that are exported."""

import io
import json
from datetime import timedelta
from uuid import UUID

import numpy as np
from hypothesis import strategies as st

from mnemic.model import LinkType, MemoryLink, MemoryStatus, MemoryType
from mnemic.repository.export import read_export, write_export
from mnemic.repository.export_format import ExportedLink
from tests.support.clock import NOON
from tests.support.entries import numbered
from tests.support.tiers import examples

ONE, TWO = UUID(int=1), UUID(int=2)
PROFILE = examples(200)


def memory(number=1, **fields):
    return numbered(number, **{"content": "Lives in Oslo", **fields})


def everything(**fields):
    """Return a memory whose every field differs from its default, unless given."""
    given = {
        "content": "Trinkt Tee 🫖 — \t\x01 “gern”\n",
        "created_at": NOON + timedelta(microseconds=123456),
        "user_id": "u",
        "project_id": "p",
        "session_id": "s",
        "type": MemoryType.PREFERENCE,
        "type_name": "Note",
        "role": "user",
        "speaker": "Ann",
        "message_id": "m-1",
        "position": 3,
        "importance": 0.1 + 0.2,
        "tags": ("b", "a", "b"),
        "metadata": {"n": 2**53, "f": 2.0, "deep": [{"none": None, "yes": True}], "": "é"},
        "embedding": np.array([0.0, -0.0, 1e-45, 3.4028235e38, 0.1], np.float32),
        "embedding_model": "model/1",
        "updated_at": NOON + timedelta(days=1),
        "last_accessed_at": NOON + timedelta(days=2),
        "access_count": 2**63 - 1,
        "status": MemoryStatus.SUPERSEDED,
        "forgotten_at": NOON + timedelta(days=3),
        "expires_at": NOON + timedelta(days=4),
        "category": "c",
        "scope": "x",
        "version": 7,
        "supersedes": TWO,
        "sensitive": True,
        "is_encrypted": True,
        "source": "notes/oslo.md",
    }
    return memory(**{**given, **fields})


LINK = MemoryLink(ONE, TWO, LinkType.REFINES, 0.7, NOON)
OWNED = ExportedLink(LINK, "u")


def written(memories=(), links=(), agent_id="a"):
    text = io.StringIO()
    with write_export(text, agent_id=agent_id, exported_at=NOON) as export:
        for one in memories:
            export.write_memory(*one)
        for link in links:
            export.write_link(*link)
    return text.getvalue()


def records(source):
    with read_export(source) as export:
        return list(export)


def of_text(text):
    return records(io.BytesIO(text.encode("utf-8", "surrogatepass")))


def same(one, other):
    """Say whether two memories agree in every field, the embedding bit for bit."""
    vectors = [
        None if entry.embedding is None else (entry.embedding.dtype, entry.embedding.tobytes())
        for entry in (one, other)
    ]
    kinds = [repr((entry, entry.metadata)) for entry in (one, other)]  # tells 1 from 1.0 and True
    models = [entry.embedding_model for entry in (one, other)]
    return one == other and all(len(set(pair)) == 1 for pair in (vectors, kinds, models))


def lines_of(**fields):
    """Return an export of one memory line with these fields changed."""
    line = {"kind": "memory", "id": str(ONE), "agent_id": "a", "content": "c"}
    line |= {"created_at": "2026-05-01T12:00:00Z", **fields}
    return HEADER + json.dumps({k: v for k, v in line.items() if v is not ...}) + "\n" + END


HEADER = (
    '{"format": "mnemic", "version": 3, "agent_id": "a", "exported_at": "2026-05-01T12:00:00Z"}\n'
)
END = '{"kind": "end", "memories": 1, "links": 0}\n'

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def _sample():
    return written([(everything(), "key-1"), (memory(2), None)], [OWNED]).encode()


SAMPLE = _sample()
