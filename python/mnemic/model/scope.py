"""Scope: the memories that a call may see."""

from typing import Final
from uuid import UUID

import msgspec

from mnemic.errors import EntryNotFoundError, InvalidArgumentError
from mnemic.model import validation
from mnemic.model.entry import MemoryEntry
from mnemic.records import Record
from mnemic.reporting.description import named
from mnemic.reporting.tracebacks import end_at_verb

NO_USER: Final = (
    "a call without a user is about the memories without one, and there are memories of users; "
    "name one with user_id=..., or all of them with all_users=True"
)


class Scope(Record, frozen=True):
    """The memories that a call may see.

    A memory or a view of one has a scope; `narrowed` makes that of a call from the call's own
    arguments. An id gives no access by itself: outside the scope it does not exist.

    Attributes:
        agent_id: An agent sees only its own memories.
        user_id: Only memories of this user; None is the memories without a user.
        project_id: Only memories of this project; None is any.
        session_id: Only memories of this session; None is any.
        all_users: All users' memories and those without a user; then no user can be named.
    """

    agent_id: str
    user_id: str | None = None
    project_id: str | None = None
    session_id: str | None = None
    all_users: bool = False

    def __post_init__(self) -> None:
        """Check the names."""
        try:
            self._check()
        except InvalidArgumentError as error:
            end_at_verb(error)
            raise

    def _check(self) -> None:
        validation.name("agent_id", self.agent_id)
        validation.optional_name("user_id", self.user_id)
        validation.optional_name("project_id", self.project_id)
        validation.optional_name("session_id", self.session_id)
        if validation.flag("all_users", self.all_users) and self.user_id is not None:
            raise InvalidArgumentError(
                f"all_users=True does not go with user_id={named(self.user_id)}; leave one of them "
                "out"
            )

    def narrowed(
        self,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        *,
        all_users: bool = False,
    ) -> "Scope":
        """Return the scope of a call within this one.

        Args:
            user_id: Only memories of this user. None is the user of this scope; in one without a
                user it is the memories without a user.
            project_id: Only memories of this project; None is that of this scope.
            session_id: Only memories of this session; None is that of this scope.
            all_users: All users' memories and those without a user. No user can be named then,
                neither here nor in this scope.

        Raises:
            InvalidArgumentError: If an argument contradicts this scope or another argument.
        """
        scope = self
        if not (user_id is None and project_id is None and session_id is None):
            scope = Scope(
                self.agent_id,
                _agreed("user_id", self.user_id, user_id),
                _agreed("project_id", self.project_id, project_id),
                _agreed("session_id", self.session_id, session_id),
                self.all_users,
            )
        if all_users is False or not validation.flag("all_users", all_users):
            return scope
        if self.user_id is not None:
            raise InvalidArgumentError(
                f"all_users=True does not go with a view of {self}, which is not widened to all "
                "users; use the memory itself"
            )
        return msgspec.structs.replace(scope, all_users=True)

    def has(self, entry: MemoryEntry) -> bool:
        """Return whether the scope contains a memory."""
        return (
            entry.agent_id == self.agent_id
            and (self.all_users or entry.user_id == self.user_id)
            and self.project_id in (None, entry.project_id)
            and self.session_id in (None, entry.session_id)
        )

    def __str__(self) -> str:
        narrower = (
            ("user", self.user_id),
            ("project", self.project_id),
            ("session", self.session_id),
        )
        nobody = "all users" if self.all_users else "no user"
        parts = [
            f"agent {self.agent_id!r}",
            *(f"{what} {named(who)}" for what, who in narrower if who),
        ]
        return ", ".join(parts if self.user_id else [parts[0], nobody, *parts[1:]])


def not_found(entry_id: UUID, scope: Scope) -> EntryNotFoundError:
    """Return the error for an id that a scope does not have."""
    return EntryNotFoundError(f"no memory with id {entry_id} for {scope}")


def _agreed(field: str, bound: str | None, given: str | None) -> str | None:
    if bound is None or given is None or (isinstance(given, str) and bound == given):
        return given if bound is None else bound
    raise InvalidArgumentError(
        f"{field} is bound to {named(bound)} here and cannot be {named(given)}; "
        "use the memory itself, or a view bound to the other one"
    )
