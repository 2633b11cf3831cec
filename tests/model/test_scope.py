"""Scopes: narrowed, never changed, and whom they cover."""

import pytest

from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic.model import Scope


def test_a_scope_is_narrowed_but_never_changed():
    scope = Scope("a").narrowed(user_id="alice")
    assert scope.narrowed(session_id="s") == Scope("a", "alice", None, "s")
    assert scope.narrowed(user_id="alice") == scope
    with pytest.raises(InvalidArgumentError, match="user_id is bound to 'alice'"):
        scope.narrowed(user_id="bob")


def test_a_scope_says_whom_it_covers():
    assert str(Scope("a")) == "agent 'a', no user"
    assert str(Scope("a", None, "p")) == "agent 'a', no user, project 'p'"
    assert str(Scope("a", "u", None, "s")) == "agent 'a', user 'u', session 's'"


def test_an_empty_name_in_a_scope_is_refused_rather_than_read_as_none():
    with pytest.raises(InvalidEntryError, match="user_id cannot be empty"):
        Scope("a", "")
