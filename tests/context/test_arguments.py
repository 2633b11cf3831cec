"""Arguments of a context window: contents with their fields, ids, and snapshots."""

import json

import msgspec
import pytest

from mnemic.context import AddOutcome, ContextItem, ContextSnapshot
from mnemic.errors import ContextWindowFullError, InvalidArgumentError
from tests.support.clock import NOON
from tests.support.windows import DOCUMENT, USER, contents, document, opened, words

pytestmark = pytest.mark.requirement("C018", "C019", "C020", "C021", "C022", "C028", "C042", "C043")


def test_a_content_can_be_added_with_its_type_and_fields():
    window = opened()
    item = window.add("tea for two", USER, priority=80, source_ref="m1", pinned=True)
    assert (item.type, item.priority, item.source_ref, item.pinned) == (USER, 80, "m1", True)


def test_the_arguments_of_add_go_together():
    window = opened()
    with pytest.raises(InvalidArgumentError, match="type must be named with a content"):
        window.add("tea")
    item = ContextItem(content="tea", type=USER)
    with pytest.raises(InvalidArgumentError, match="type, priority must be in the item"):
        window.add(item, USER, priority=3)
    with pytest.raises(InvalidArgumentError, match="item must be a ContextItem or a str, got 3"):
        window.add(3)
    assert len(window) == 0


def test_an_id_is_in_a_window_once():
    window = opened()
    window.add("tea", USER, id="a")
    with pytest.raises(InvalidArgumentError, match="id 'a' is in the window already"):
        window.add("coffee", USER, id="a")
    assert contents(window.items()) == ["tea"]


def test_a_snapshot_brings_everything_back_also_through_json():
    window = opened(clock=lambda: NOON)
    for letter in "zka":
        window.add(letter, USER, source_ref=letter, metadata={"of": [1, letter]})
    window.add("pinned", DOCUMENT, pinned=True, priority=9)
    taken = window.snapshot()
    before = window.items()
    assert (taken.agent_id, taken.max_tokens, taken.token_count) == ("default", 100, 4)
    window.clear(include_pinned=True)
    window.add("something else", USER)
    kept = msgspec.json.decode(msgspec.json.encode(taken), type=ContextSnapshot)
    assert kept == taken
    window.restore(kept)
    assert window.items() == before
    assert window.current_tokens == 4
    assert window.try_add(document("k", "k")).outcome is AddOutcome.PRESENT


def test_a_snapshot_is_restored_for_its_agent_alone():
    taken = opened(agent_id="aide").snapshot()
    window = opened(agent_id="other")
    window.add("tea", USER)
    with pytest.raises(InvalidArgumentError, match="of agent 'aide', the window of 'other'"):
        window.restore(taken)
    with pytest.raises(InvalidArgumentError, match="must be a ContextSnapshot"):
        window.restore(None)
    assert contents(window.items()) == ["tea"]


def test_a_snapshot_that_does_not_fit_changes_nothing():
    large = opened(200)
    large.add(words(120), USER)
    window = opened(100)
    window.add("tea", USER)
    with pytest.raises(ContextWindowFullError):
        window.restore(large.snapshot())
    taken = window.snapshot()
    many = tuple(ContextItem(content="x", type=USER, id=str(n), added_at=NOON) for n in range(1001))
    with pytest.raises(InvalidArgumentError, match="at most 1000 items, got 1001"):
        window.restore(msgspec.structs.replace(taken, items=many))
    assert contents(window.items()) == ["tea"]


def test_a_damaged_snapshot_is_refused_where_it_is_read():
    window = opened()
    window.add("tea", USER, id="a")
    plain = json.loads(msgspec.json.encode(window.snapshot()))
    for damage in (
        {"items": plain["items"] * 2},
        {"items": [{**plain["items"][0], "id": ""}]},
        {"items": [{**plain["items"][0], "priority": 500}]},
        {"items": [{**plain["items"][0], "added_at": None}]},
        {"agent_id": ""},
        {"max_tokens": 0},
    ):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(json.dumps({**plain, **damage}), type=ContextSnapshot)
