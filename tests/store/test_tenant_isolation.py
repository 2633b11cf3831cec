"""Isolation of users in every store: ids and revisions are theirs alone."""

import pytest

from mnemic.errors import AmbiguousIdError, LinkAcrossUsersError
from mnemic.model import LinkType, MemoryType, Scope
from mnemic.store.operations import Delete, Links, Restore, SoftDelete, Unlink
from tests.store.contract import (
    ALICE,
    BOB,
    EVERYONE,
    added,
    all_links,
    changed,
    entries_by_id,
    linked,
    one,
    revision_of,
    row_of,
    seq_of,
)
from tests.support.clock import NOON
from tests.support.entries import numbered, only, uid


def revisions(store):
    return tuple(revision_of(store, scope) for scope in (ALICE, BOB, Scope("a")))


def alices(number, **fields):
    return numbered(number, user_id="alice", **fields)


# Revisions


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


# Links


@pytest.mark.parametrize("kind", [LinkType.RELATED, LinkType.CONTRADICTS])
def test_a_link_between_users_is_refused(store, kind):
    added(store, "a", [numbered(1, user_id="alice"), numbered(2, user_id="bob"), numbered(3)])
    seq = seq_of(store)
    for ends in ((1, 2), (2, 1), (2, 3), (3, 1)):
        with pytest.raises(LinkAcrossUsersError, match="not of the same user") as raised:
            linked(store, *ends, scope=EVERYONE, kind=kind)
        assert not {"alice", "bob"} & set(str(raised.value).split())
    assert (all_links(store, EVERYONE), seq_of(store)) == ([], seq)
