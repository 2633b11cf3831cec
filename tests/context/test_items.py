"""Items of a context window: defaults, types, and fields that are wrong."""

import pytest

from mnemic.context import CompactionStrategy, ContextItem, ContextItemType
from mnemic.errors import InvalidArgumentError
from tests.support.windows import OTHER, USER

pytestmark = pytest.mark.requirement("C018", "C019", "C020", "C021", "C022", "C028", "C042", "C043")


def test_an_item_has_the_documented_defaults():
    item = ContextItem(content="tea", type=USER)
    assert (item.priority, item.token_count, item.pinned) == (50, 0, False)
    assert (item.source_ref, item.role, item.metadata) == (None, None, {})
    assert {kind.name: kind.number for kind in ContextItemType} == {
        "SYSTEM_PROMPT": 0,
        "INSTRUCTION": 1,
        "RETRIEVED_DOCUMENT": 2,
        "WORKING_MEMORY": 3,
        "TOOL_RESULT": 4,
        "USER_MESSAGE": 5,
        "ASSISTANT_MESSAGE": 6,
        "OTHER": 99,
    }
    assert [strategy.name for strategy in CompactionStrategy] == [
        "REMOVE_OLDEST", "REMOVE_LOW_PRIORITY", "SUMMARIZE", "SELECTIVE",
    ]  # fmt: skip


def test_types_are_known_by_number_and_by_name():
    for given in (99, "other", "OTHER", OTHER):
        assert ContextItem(content="tea", type=given).type is OTHER
    assert ContextItem(content="tea", type=5).type is USER


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": " "}, "content cannot be empty"),
        ({"content": None}, "content must be a str, got NoneType"),
        ({"type": 7}, "type 7 is unknown; it is one of system_prompt, instruction"),
        ({"type": True}, "type True is unknown"),
        ({"type": "letter"}, "type 'letter' is unknown"),
        ({"id": "a\n"}, "id holds a control character"),
        ({"priority": 101}, "priority must be from 0 to 100, got 101"),
        ({"priority": -1}, "priority must be at least 0"),
        ({"priority": 50.0}, "priority must be an int, got float"),
        ({"token_count": -1}, "token_count must be at least 0"),
        ({"pinned": 1}, "pinned must be True or False, got 1"),
        ({"added_at": "noon"}, "added_at must be a datetime, got str"),
        ({"source_ref": ""}, "source_ref cannot be empty"),
        ({"role": 3}, "role must be a str, got int"),
        ({"metadata": [1]}, "metadata must be a dict, got list"),
        ({"metadata": {"a": object()}}, r"metadata\['a'\] is a object"),
    ],
)
def test_an_item_says_which_field_is_wrong_and_what_was_wanted(fields, message):
    with pytest.raises(InvalidArgumentError, match=message):
        ContextItem(**{"content": "tea", "type": USER, **fields})
