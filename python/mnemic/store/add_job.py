"""The job of storing entries, which a group commit joins with others of its kind."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from mnemic.store.new_rows import AddedRows, AddOptions, NewRow

Add: TypeAlias = Callable[[Any, str, Sequence[NewRow], AddOptions], AddedRows]
"""Stores entries of an agent on a connection, all or none."""


class AddJob:
    """The job of storing entries, all or none, with their vectors.

    Attributes:
        agent_id: The agent.
        rows: The entries.
        rules: The options.
        kind: Equal for jobs that `run_together` can join; None if the job must run alone.

    Args:
        add: Stores them.
    """

    __slots__ = ("_add", "agent_id", "kind", "rows", "rules")

    def __init__(self, add: Add, agent_id: str, rows: Sequence[NewRow], rules: AddOptions) -> None:
        self._add = add
        self.agent_id = agent_id
        self.rows = rows
        self.rules = rules
        is_plain = rules.on_conflict == "raise" and are_independent(rows, rules)
        # What a call deletes is its own.
        is_plain = is_plain and not (rules.instead_of or rules.quotas.entry_limits.evicts)
        self.kind = (agent_id, rules.model, rules.quotas, rules.key) if is_plain else None

    def __call__(self, connection: Any) -> AddedRows:
        """Store the entries."""
        return self._add(connection, self.agent_id, self.rows, self.rules)

    @staticmethod
    def run_together(connection: Any, jobs: "Sequence[AddJob]") -> list[AddedRows]:
        """Run jobs of one kind as one; half the work where each has one entry."""
        first = jobs[0]
        rows = [new for job in jobs for new in job.rows]
        added = first._add(connection, first.agent_id, rows, first.rules)  # noqa: SLF001 - of a job
        return _split_result(added, [len(job.rows) for job in jobs])


def _split_result(added: AddedRows, sizes: Sequence[int]) -> list[AddedRows]:
    """Return the result of each call, if all entries were stored."""
    parts: list[AddedRows] = []
    end, before = 0, added.seq - added.steps
    for size in sizes:
        begin, end = end, end + size
        parts.append(AddedRows(before + end, size, added.outcomes[begin:end], []))
    return parts


def are_independent(rows: Sequence[NewRow], rules: AddOptions) -> bool:
    """Return whether storing these entries reads no other entry."""
    return rules.on_duplicate == "keep" and all(map(_is_independent, rows))


def _is_independent(new: NewRow) -> bool:
    return new.more[1] is None and new.entry.supersedes is None
