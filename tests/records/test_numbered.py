"""Enumerations of words with numbers: words in JSON, numbers in files, equal to both."""

import copy
import pickle

import msgspec
import pytest

from mnemic import Memory, MemoryStatus, MemoryType
from mnemic.compat import CompactionStrategy, ContextItemType, LicenseTier
from mnemic.model import LinkType

ENUMS = (CompactionStrategy, ContextItemType, LicenseTier, LinkType, MemoryStatus, MemoryType)


@pytest.mark.parametrize("enum", ENUMS)
def test_a_member_is_a_word_with_a_number(enum):
    for member in enum:
        assert member.value == str(member) == member.name.lower()
        assert member == member.number == int(member) == range(100)[member]
        assert enum(member.value) is enum(member.number) is enum.numbered(member.number) is member
        assert {member: 1}[member.number] == 1
        assert bool(member) is bool(member.number)
        assert msgspec.json.decode(msgspec.json.encode(member), type=enum) is member
        assert msgspec.json.encode({member: [member]}) == b'{"%s":["%s"]}' % (
            (member.value.encode(),) * 2
        )
        assert pickle.loads(pickle.dumps(member)) is copy.deepcopy(member) is member  # noqa: S301
    numbers = [member.number for member in enum]
    assert sorted(enum) == list(enum) == numbers == sorted(set(numbers))
    assert max(enum) > 0 <= min(enum) < max(enum)


@pytest.mark.parametrize("wrong", [77, -1, True, 0.5, None, "fakt"])
def test_another_value_is_no_member(wrong):
    with pytest.raises(ValueError, match="MemoryType"):
        MemoryType(wrong)


def test_members_of_two_enumerations_differ_and_have_no_order():
    assert MemoryType.FACT != MemoryStatus.ACTIVE
    assert MemoryType.FACT != "fact"
    with pytest.raises(TypeError, match="not supported"):
        MemoryType.FACT < MemoryStatus.SUPERSEDED  # noqa: B015


def test_msgspec_writes_the_words_of_records():
    with Memory(":memory:", embedder=None) as memory:
        first = memory.add("tea", type="preference").id
        memory.link(memory.add("more tea").id, first, "refines")
        entry = msgspec.json.decode(msgspec.json.encode(memory.get(first)))
        assert (entry["type"], entry["status"]) == ("preference", "active")
        (link,) = memory.links(first)
        assert msgspec.json.decode(msgspec.json.encode(link))["type"] == "refines"


def test_metadata_and_filters_of_metadata_take_a_member_as_its_word():
    with Memory(":memory:", embedder=None) as memory:
        stored = memory.add("tea", metadata={"kind": MemoryType.EVENT, "all": [LinkType.REFINES]})
        assert stored.metadata == {"kind": "event", "all": ["refines"]}
        assert memory.get(stored.id).metadata == stored.metadata
        assert memory.count(filters={"metadata": {"kind": MemoryType.EVENT}}) == 1
        assert memory.count(filters={"metadata": {"kind": MemoryType.FACT}}) == 0
