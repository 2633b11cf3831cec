"""Isolation of users in every store: ids and revisions are theirs alone."""

import numpy as np
import pytest

from mnemic.errors import AmbiguousIdError
from mnemic.model import MemoryEntryUpdate, MemoryType, Scope
from mnemic.model.filter import EVERY_ENTRY, Criteria, parse_filter
from mnemic.store.operations import (
    AddEmbeddings,
    Delete,
    Links,
    Purge,
    Restore,
    SoftDelete,
    Unlink,
    Update,
)
from tests.store.contract import (
    ALICE,
    BOB,
    EVERYONE,
    added,
    changed,
    entries_by_id,
    link_of,
    linked,
    links_added,
    one,
    revision_of,
    row_of,
    seq_of,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, only, uid

NOBODY = Scope("a")


def revision(store, scope):
    return revision_of(store, scope)


def revisions(store):
    return tuple(revision(store, scope) for scope in (ALICE, BOB, NOBODY))


def alices(number, **fields):
    return numbered(number, user_id="alice", **fields)


# Revisions


def test_the_revision_of_a_scope_is_raised_by_its_own_changes_alone(store):
    assert (*revisions(store), revision(store, EVERYONE)) == (0, 0, 0, 0)
    added(store, "a", [alices(1)])
    assert revisions(store) == (1, 0, 0)
    added(store, "a", [numbered(2, user_id="bob"), numbered(3), alices(4)])
    assert revisions(store) == (2, 1, 1)
    assert revision(store, EVERYONE) == seq_of(store) == 4
    added(store, "b", [numbered(1, agent_id="b", user_id="alice")])
    assert revisions(store) == (2, 1, 1)
    assert revision(store, Scope("a", "alice", "project", "session")) == 2


FIRST_THREE = Criteria([uid(1), uid(3)], parse_filter({"content": {"contains": "memory"}}))


def raised(entry):
    return MemoryEntryUpdate(importance=1).applied_to(entry, NOON)


CHANGES = {
    "add": lambda store: added(store, "a", [alices(9)]),
    "merge": lambda store: added(
        store, "a", [alices(9, content="memory 1", tags=["new"])], on_duplicate="merge"
    ),
    "supersede": lambda store: added(store, "a", [alices(9, supersedes=uid(1))]),
    "update": lambda store: changed(store, 1, scope=ALICE, importance=0.9),
    "update for all users": lambda store: changed(store, 1, scope=EVERYONE, importance=0.9),
    "forget": lambda store: store.write(SoftDelete(ALICE, only(1), NOON)).result(),
    "restore": lambda store: store.write(
        Restore(ALICE, only(2), oldest=NOON - HOUR, now=NOON)
    ).result(),
    "delete": lambda store: store.write(Delete(ALICE, only(1))).result(),
    "forget all": lambda store: store.write(SoftDelete(ALICE, EVERY_ENTRY, NOON)).result(),
    "delete all": lambda store: store.write(Delete(ALICE)).result(),
    "delete many": lambda store: store.write(Delete(EVERYONE, FIRST_THREE)).result(),
    "update many": lambda store: store.write(
        Update(EVERYONE, FIRST_THREE, change=raised, now=NOON)
    ).result(),
    "purge": lambda store: store.write(Purge(EVERYONE, NOON + HOUR)).result(),
    "link": lambda store: linked(store, 1, 3, scope=ALICE),
    "unlink": lambda store: store.write(Unlink(ALICE, uid(3), uid(1), None)).result(),
    "import a link": lambda store: links_added(store, link_of(1, 3), user_id="alice"),
    "embed": lambda store: store.write(
        AddEmbeddings("a", "m", {1: "memory 1"}, [np.ones((1, 2), np.float32)])
    ).result(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_kind_of_change_raises_its_own_scopes_revision(change, store):
    added(store, "a", [alices(1), alices(2), alices(3), numbered(4, user_id="bob"), numbered(5)])
    store.write(SoftDelete(ALICE, only(2), NOON)).result()
    linked(store, 3, 1, scope=ALICE)
    alice, bob, nobody = revisions(store)
    CHANGES[change](store)
    assert revision(store, ALICE) > alice
    assert revisions(store)[1:] == (bob, nobody)


@pytest.mark.usefixtures("few_changes_are_kept")
def test_a_revision_is_kept_when_the_last_entry_goes_and_when_changes_are_pruned(store):
    added(store, "a", [alices(1)])
    store.write(Delete(ALICE)).result()
    for number in range(2, 22):
        added(store, "a", [numbered(number, user_id="bob", type=MemoryType.EVENT)])
    assert revisions(store) == (2, 20, 0)


# Ids


AMBIGUOUS = {
    "get": lambda store: one(store, EVERYONE, 1),
    "get several": lambda store: entries_by_id(store, EVERYONE, [uid(2), uid(1)], now=NOON),
    "get forgotten": lambda store: one(store, EVERYONE, 1, include_deleted=True),
    "row": lambda store: row_of(store, EVERYONE, uid(1), now=NOON),
    "update": lambda store: changed(store, 1, scope=EVERYONE, importance=0.9),
    "forget": lambda store: store.write(SoftDelete(EVERYONE, only(1), NOON)).result(),
    "restore": lambda store: store.write(
        Restore(EVERYONE, only(3), oldest=NOON, now=NOON)
    ).result(),
    "delete": lambda store: store.write(Delete(EVERYONE, only(1))).result(),
    "link from": lambda store: linked(store, 1, 2, scope=EVERYONE),
    "link to": lambda store: linked(store, 2, 1, scope=EVERYONE),
    "unlink": lambda store: store.write(Unlink(EVERYONE, uid(2), uid(1), None)).result(),
    "links": lambda store: store.read(Links(EVERYONE, NOON, uid(1))),
}


@pytest.mark.parametrize("call", AMBIGUOUS)
def test_an_id_of_several_users_is_ambiguous_for_all_users_and_nothing_changes(call, store):
    added(store, "a", [alices(1), numbered(1, user_id="bob"), alices(2)])
    added(store, "a", [alices(3, forgotten_at=NOON), numbered(3, forgotten_at=NOON)])
    before = revisions(store)
    with pytest.raises(AmbiguousIdError, match="name the user_id"):
        AMBIGUOUS[call](store)
    assert revisions(store) == before
    assert one(store, ALICE, 1).importance == one(store, BOB, 1).importance == 0.5
    assert one(store, EVERYONE, 2).content == "memory 2"
