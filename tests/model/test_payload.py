"""Records of a prompt block: plain forms that are complete, and reprs without content."""

import msgspec
import pytest

from mnemic.model.payload import DroppedMemory, PayloadMemory
from tests.support.clock import NOON


def test_a_repr_has_neither_content_nor_speaker():
    memory = PayloadMemory(id="m", content="likes tea", timestamp=NOON, speaker="Anna", role="user")
    for shown in (repr(memory), str(memory.__rich_repr__())):
        assert not any(word in shown for word in ("likes", "Anna", "user"))
    assert "id='m'" in repr(memory)


def test_records_are_values_and_cannot_be_changed():
    memory = PayloadMemory(id="m", content="likes tea", timestamp=NOON)
    dropped = DroppedMemory(id="m", step="budget", reason="It does not fit.", score=0.5)
    assert memory == msgspec.structs.replace(memory)
    assert hash(memory) == hash(msgspec.structs.replace(memory))
    assert dropped.to_dict()["step"] == "budget"
    for record, field in ((memory, "content"), (memory.provenance, "position"), (dropped, "id")):
        with pytest.raises(AttributeError):
            setattr(record, field, "other")
