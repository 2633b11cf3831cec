"""Exports: what is written is read back exactly, and nothing else is read without a complaint."""

import json
from datetime import UTC

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import ExportFormatError
from mnemic.model import LinkType, MemoryEntry, MemoryLink, MemoryStatus, MemoryType
from mnemic.repository import export_format
from mnemic.repository.export_format import (
    MAX_LINE_BYTES,
    ExportedLink,
    ExportedMemory,
    ExportFooter,
    ExportHeader,
)
from tests.support.clock import NOON
from tests.support.exports import (
    JSON,
    LINK,
    OWNED,
    PROFILE,
    TEXTS,
    everything,
    lines_of,
    memory,
    of_text,
    records,
    same,
    written,
)
from tests.support.paths import FIXTURES


def further():
    """Return the vectors of two further parts of that memory."""
    first = everything().embedding
    return [first[::-1] * np.float32(0.5), -first]


# Round trips


def test_fields_at_their_default_are_left_out():
    line = json.loads(written([(memory(), None)]).splitlines()[1])
    assert line == {
        "kind": "memory",
        "id": "00000000-0000-0000-0000-000000000001",
        "agent_id": "a",
        "content": "Lives in Oslo",
        "created_at": "2026-05-01T12:00:00Z",
    }


def test_a_line_knows_every_field_of_the_record():
    # A new field needs a new version of the format: a reader of version 1 refuses it by name.
    known = set(export_format._MemoryLine.__struct_fields__) - {
        "idempotency_key",
        "more_embeddings",
    }
    assert known == set(MemoryEntry.__struct_fields__)
    always = {"id", "agent_id", "content", "created_at", "updated_at", "embedding"}
    assert set(export_format._LEFT_OUT) == known - always
    plain = memory()
    assert all(getattr(plain, name) == value for name, value in export_format._LEFT_OUT.items())


def test_content_of_ten_megabytes_comes_back_when_every_byte_is_escaped():
    entry = memory(content="\x01" * (10 * 1024 * 1024))
    text = written([(entry, None)])
    assert 60 * 1024 * 1024 < len(text) < MAX_LINE_BYTES
    assert of_text(text)[1][1].entry == entry


FIXTURE_OF = {
    1: ({"source": None}, [], None, ExportedLink(LINK)),
    2: ({"source": None}, further(), None, ExportedLink(LINK)),
    3: ({"source": None}, further(), "u", OWNED),
    4: ({}, further(), "u", OWNED),
}
"""Of each version: what its first memory lacks, its further parts, the second's user, the link."""


@pytest.mark.parametrize("version", FIXTURE_OF)
def test_the_fixture_of_each_version_reads_as_it_was_written(version):
    fields, parts, user, link = FIXTURE_OF[version]
    header, first, *others = [each for _, each in records(FIXTURES / f"export_v{version}.jsonl")]
    assert header == ExportHeader("a", NOON, version)
    assert same(first.entry, everything(**fields))
    assert first.idempotency_key == "key-1"
    assert [vector.tobytes() for vector in first.more] == [part.tobytes() for part in parts]
    second = ExportedMemory(memory(2, content="Allergic to peanuts", user_id=user))
    assert others == [second, link, ExportFooter(2, 1)]


def test_the_vectors_of_further_parts_come_back_bit_for_bit():
    (_, read) = of_text(written([(everything(), None, further())]))[1]
    assert [vector.tobytes() for vector in read.more] == [part.tobytes() for part in further()]
    assert not any(vector.flags.writeable for vector in read.more)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"more_embeddings": ["AACAPw=="]}, "more_embeddings stands without embedding"),
        ({"more_embeddings": ["AACAPwAAgD8="], "embedding": "AACAPw=="}, "vector of 2 numbers"),
        ({"more_embeddings": ["AACA"], "embedding": "AACAPw=="}, "3 bytes"),
        ({"more_embeddings": ["AADAfw=="], "embedding": "AACAPw=="}, "NaN"),
        ({"more_embeddings": "AACAPw==", "embedding": "AACAPw=="}, "array"),
    ],
)
def test_further_parts_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(ExportFormatError, match=message):
        of_text(lines_of(embedding_model="m", **fields))


NAMES = (
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12).map(str.strip).filter(bool)
)
CONTENTS = TEXTS.filter(lambda text: text and not text.isspace())
TIMES = st.datetimes(timezones=st.just(UTC)).map(lambda time: time.replace(fold=0))
FRACTIONS = st.floats(0, 1)
COUNTS = st.integers(0, 2**63 - 1)
VECTORS = st.lists(
    st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=9
).map(lambda numbers: np.array(numbers, np.float32))
ENTRIES = st.builds(
    MemoryEntry,
    id=st.uuids(),
    agent_id=st.just("a"),
    content=CONTENTS,
    created_at=TIMES,
    type=st.sampled_from(MemoryType),
    type_name=NAMES,
    importance=FRACTIONS,
    tags=st.lists(NAMES, max_size=3).map(tuple),
    metadata=st.dictionaries(TEXTS, JSON, max_size=3),
    embedding=st.none() | VECTORS,
    updated_at=TIMES,
    access_count=COUNTS,
    status=st.sampled_from(MemoryStatus),
    version=st.integers(1, 2**63 - 1),
    sensitive=st.booleans(),
    is_encrypted=st.booleans(),
    position=st.none() | COUNTS,
    supersedes=st.none() | st.uuids(),
    **{
        name: st.none() | NAMES
        for name in (
            *("user_id", "project_id", "session_id", "role", "speaker", "message_id"),
            *("embedding_model", "category", "scope", "source"),
        )
    },
    **{name: st.none() | TIMES for name in ("last_accessed_at", "forgotten_at", "expires_at")},
)
LINKS = (
    st.tuples(st.uuids(), st.uuids(), st.sampled_from(LinkType), FRACTIONS, TIMES)
    .filter(lambda link: link[0] != link[1])
    .map(lambda link: MemoryLink(*link))
)
OWNED_LINKS = st.builds(ExportedLink, LINKS, st.none() | NAMES)  # fmt: skip


@PROFILE
@given(
    st.lists(st.tuples(ENTRIES, st.none() | NAMES), max_size=3), st.lists(OWNED_LINKS, max_size=3)
)
def test_whatever_is_written_is_read_back_exactly(memories, links):
    read = [record for _, record in of_text(written(memories, links))]
    assert read[-1] == ExportFooter(len(memories), len(links))
    for (entry, key), record in zip(memories, read[1:], strict=False):
        assert same(entry, record.entry)
        assert key == record.idempotency_key
    assert read[1 + len(memories) : -1] == links
