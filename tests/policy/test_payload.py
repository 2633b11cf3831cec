"""The payload of a run: its shape, its provenance and its reprs."""

import json

import pytest

from mnemic import MemoryEntry, MemoryType
from mnemic.policy import RetrievalPolicy, format_for_system_prompt
from tests.support.policy import BY_KEYWORDS, DOORS, request


@pytest.mark.requirement("R281", "R290", "R299", "R300", "R301", "R302")
@pytest.mark.parametrize("door", DOORS)
def test_a_message_gives_a_payload_with_provenance_and_metadata(memory, door):
    entry = memory.add(
        MemoryEntry(
            "The harbour freezes in January. Boats stay ashore. Nobody sails then.",
            message_id="m-7",
            role="user",
            type="conversation",
        ),
        user_id="alice",
        session_id="yesterday",
    )
    payload = DOORS[door](RetrievalPolicy(memory, BY_KEYWORDS), "run", request())
    (found,) = payload.memories
    assert (found.id, found.session_id, found.message_id) == (str(entry.id), "yesterday", "m-7")
    assert found.content == "The harbour freezes in January. Boats stay ashore…"
    assert (found.type, found.role, found.timestamp) == ("message", "user", entry.created_at)
    assert 0 < found.score <= 1
    assert found.provenance.collection == "user:alice"
    assert found.provenance.search_type == "keyword"
    assert found.provenance.original_length == len(entry.content)
    assert not found.provenance.was_redacted
    metadata = payload.metadata
    assert (metadata.total_results, metadata.included_results) == (1, 1)
    assert metadata.total_tokens > 0
    assert metadata.query_time > 0
    assert metadata.config == BY_KEYWORDS
    assert metadata.trigger.should_retrieve
    assert metadata.error is None
    assert payload.prompt == format_for_system_prompt(payload)
    assert "user: The harbour freezes in January. Boats stay ashore…" in payload.prompt


@pytest.mark.requirement("R299", "R300", "R301", "R302", "C039")
def test_a_payload_has_the_documented_shape_in_camel_case(memory):
    memory.add("The harbour freezes.", user_id="alice")
    payload = RetrievalPolicy(memory, BY_KEYWORDS).run(request())
    shape = payload.to_dict(camel_case=True)
    (entry,) = shape["memories"]
    assert {"id", "content", "score", "timestamp", "sessionId", "messageId", "type", "role"} <= set(
        entry
    )
    assert {"collection", "searchType", "originalLength", "wasRedacted"} <= set(entry["provenance"])
    documented = {"queryTime", "totalResults", "includedResults", "totalTokens", "appliedFilters"}
    assert documented | {"config"} <= set(shape["metadata"])
    assert {"topK", "clipSentences", "maxTokens", "searchType", "minScore"} <= set(
        shape["metadata"]["config"]
    )
    assert entry["timestamp"].endswith("Z")
    assert json.loads(payload.to_json()) == payload.to_dict()


@pytest.mark.requirement("R300")
@pytest.mark.parametrize("type_", list(MemoryType))
def test_the_type_of_a_payload_memory_is_that_of_the_memorys_type(memory, type_):
    memory.add("The harbour freezes.", user_id="alice", type=type_)
    (found,) = RetrievalPolicy(memory, BY_KEYWORDS).run(request()).memories
    assert found.type == type_.payload_type


@pytest.mark.requirement("C054")
@pytest.mark.parametrize(
    ("metadata", "confidence"),
    [
        ({"confidence": 0.9}, 0.9),
        ({"confidence": 1}, 1.0),
        ({"confidence": 7}, None),
        ({"confidence": True}, None),
        ({"confidence": "high"}, None),
        ({}, None),
    ],
)
def test_a_facts_own_confidence_is_that_of_its_metadata(memory, metadata, confidence):
    memory.add("The harbour freezes.", user_id="alice", metadata=metadata)
    payload = RetrievalPolicy(memory, BY_KEYWORDS).run(request())
    assert payload.memories[0].confidence == confidence
    assert ("(confidence: 0.90)" in payload.prompt) is (confidence == 0.9)


def test_reprs_show_no_content(memory):
    memory.add("The harbour freezes.", user_id="alice", role="zqrole", speaker="zqspeaker")
    policy = RetrievalPolicy(memory, BY_KEYWORDS)
    asked = request("The harbour zqword")
    payload = policy.run(asked)
    assert payload.memories
    for shown in map(repr, (policy, policy.aio, asked, payload, *payload.memories)):
        assert not any(word in shown for word in ("harbour", "zqword", "zqrole", "zqspeaker"))
