"""Jobs of group commits: each with its agents, and how to find whether it was committed."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from mnemic.store.add_job import AddJob
from mnemic.store.new_rows import AddedRows, AddOptions, NewRow, encoded
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.writes import add
from mnemic.store.row_codec import uuid_of
from mnemic.store.sql.accesses import AccessFlush, write_accesses
from mnemic.store.sql.sealing import check_no_key, current_key

_LOGGED: Final = (
    "SELECT EXISTS (SELECT FROM mnemic.agent_memory_changes WHERE agent_id = %s "
    "AND seq > %s AND seq <= %s AND entry_row = %s AND entry_id = %s AND kind = 'add')"
)


class AgentsJob(Protocol):
    """A job that changes memories of known agents."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents whose memories it may change, which are locked for it."""
        ...

    @property
    def stored(self) -> AddedRows | None:
        """What its last run stored under new ids; None if it stores none or has not run."""
        ...

    def __call__(self, session: Session) -> Any:
        """Do the work."""
        ...


class AgentJob:
    """A job that changes memories of one agent.

    Args:
        agent_id: The agent.
        work: The work.
        is_idempotent: Whether doing it twice is as good as once.
    """

    __slots__ = ("_work", "agents", "is_idempotent")

    stored: AddedRows | None = None

    def __init__(
        self, agent_id: str, work: Callable[[Session], Any], *, is_idempotent: bool = False
    ) -> None:
        self.agents = (agent_id,)
        self.is_idempotent = is_idempotent
        self._work = work

    def __call__(self, session: Session) -> Any:
        """Do the work."""
        return self._work(session)


class AccessJob:
    """A job that writes the accesses of an agent.

    It takes them under the agent's lock: a memory may be stored again while it waits for that, and
    must not get the accesses of the old one.

    Args:
        flush: The accesses.
        agent_id: The agent.
    """

    __slots__ = ("_flush", "agents")

    stored: AddedRows | None = None

    def __init__(self, flush: AccessFlush, agent_id: str) -> None:
        self._flush = flush
        self.agents = (agent_id,)

    def __call__(self, session: Session) -> None:
        """Write them."""
        taken = self._flush.taken(self.agents)
        if taken:
            session.positions.update(write_accesses(session, taken))


class TurnJob:
    """A job that does nothing: its future is done once all jobs before it are."""

    __slots__ = ()

    agents: tuple[str, ...] = ()
    stored: AddedRows | None = None

    def __call__(self, session: Session) -> None:
        """Do nothing."""


class AgentAddJob(AddJob):
    """The job of storing entries of one agent."""

    __slots__ = ("agents", "stored")

    def __init__(self, agent_id: str, rows: Sequence[NewRow], rules: AddOptions) -> None:
        super().__init__(add, agent_id, rows, rules)
        self.agents = (agent_id,)
        self.stored: AddedRows | None = None

    def __call__(self, connection: Session) -> AddedRows:
        """Store the entries."""
        self.stored = None
        check_add_keys(connection, [self])
        self.stored = super().__call__(connection)
        return self.stored

    @staticmethod
    def run_together(connection: Session, jobs: "Sequence[AddJob]") -> list[AddedRows]:
        """Run jobs of one kind as one."""
        check_add_keys(connection, jobs)
        results = AddJob.run_together(connection, jobs)
        for job, result in zip(jobs, results, strict=True):
            if isinstance(job, AgentAddJob):
                job.stored = result
        return results


def check_add_keys(session: Session, jobs: Sequence[AddJob]) -> None:
    """Check the keys of what jobs of one kind store; reseal it if the agent has another now.

    Raises:
        KeyUnavailableError: If sensitive entries are stored without a key.
        WrongKeyError: If the agent has other keys now.
    """
    agent_id, rows = jobs[0].agent_id, [new for job in jobs for new in job.rows]
    if jobs[0].rules.key is None:
        if any(new.entry.sensitive for new in rows):
            check_no_key(session, agent_id)
        return
    if not any(new.entry.is_encrypted for new in rows):
        return
    codecs = dict.fromkeys(job.rules.codec for job in jobs)
    keys = {codec: current_key(session, codec, agent_id) for codec in codecs}
    for job in jobs:
        key = keys[job.rules.codec]
        if job.rules.key != key:
            job.rules = job.rules._replace(key=key)
            job.rows = _sealed_again(job.rows, job.rules)


def _sealed_again(rows: Sequence[NewRow], rules: AddOptions) -> list[NewRow]:
    entries = [new.given for new in rows]
    model = None if rules.model is None else rules.model[0]
    return encoded(rules.codec, entries, [new.vectors for new in rows], model)


def outcome_check(jobs: Sequence[AgentsJob]) -> Callable[[Session], bool] | None:
    """Return how to find out whether a transaction that ran jobs was committed.

    The change log shows it where one of them stored memories under new ids. Those that replaced
    others are not recognised: another writer may have replaced the same ones.

    Returns:
        A function to be called under the locks of the jobs' agents, which the lost transaction held
        until its end; None if the outcome is unknown.
    """
    if all(isinstance(job, AgentJob) and job.is_idempotent for job in jobs):
        return lambda _: False  # do it again
    ran = [job.stored for job in jobs]
    if ran and all(stored is not None and not stored.steps for stored in ran):
        return lambda _: True  # there was nothing to commit
    for job, stored in zip(jobs, ran, strict=True):
        if stored is not None and any(outcome.is_new for outcome in stored.outcomes):
            return _check_of(job.agents[0], stored)
    return None


def _check_of(agent_id: str, stored: AddedRows) -> Callable[[Session], bool]:
    """Return whether what an addition stored is in the change log, under its numbers.

    The last new memory tells: a long addition drops the first of its own changes from the log.
    """
    *_, last = [outcome for outcome in stored.outcomes if outcome.is_new]
    entry_id = uuid_of(last.entry_id)
    values = agent_id, stored.seq - stored.steps, stored.seq, last.row, entry_id
    return lambda session: bool(session.value(_LOGGED, values))
