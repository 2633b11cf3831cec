"""Positions of agents in their logs: each search asks the server, and the last ones are kept."""

import selectors
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg.pq import ExecStatus, TransactionStatus

from mnemic.errors import StoreUnavailableError
from mnemic.model.deadline import check_deadline
from mnemic.reporting.logs import logger
from mnemic.store.postgres.schema import SETTING, naming
from mnemic.store.postgres.session import Connection
from mnemic.store.postgres.target import Target
from mnemic.store.values import LogPosition
from mnemic.threads.background import Background
from mnemic.threads.locks import Condition, InnerLock, settling

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

ANSWER_SECONDS: Final = 3.0
"""Seconds without an answer after which the server counts as away."""

BEAT_SECONDS: Final = 3.0
"""Seconds between two questions that nobody waits for. They show how old the known positions are
once the server is away."""

_ASKED_SECONDS: Final = 3600.0
"""Seconds since an agent's last search after which those leave it out."""

_RECONNECTING: Final = 0.1
"""Seconds that a search waits for a lost connection to come back before it reads stale data."""

_ATTEMPTS: Final = 2
"""Questions of a search: the server may have ended a connection that nobody used for long."""

_MAX_PAUSE: Final = 1.0
"""Maximum seconds between two attempts to connect."""

_QUESTION: Final = (
    "SELECT agent_id, seq, accesses FROM mnemic.agent_memory_agents "
    f"WHERE agent_id = ANY(current_setting('{SETTING}')::text[])"
)

_BEGINNING: Final = LogPosition(0, 0)

_log = logger(__name__)


@dataclass(slots=True)
class _Known:
    """What is known of an agent.

    Attributes:
        position: The last position that a search was given, or a commit of this process reached;
            None where a commit may have moved it, or not.
        heard_at: When the server last said that it is current.
        asked_at: When a search last asked, in seconds of `time.monotonic()`.
        stale: When it was last given out although the server did not answer, in the same seconds,
            and since when it may have been stale; None if it never was.
    """

    position: LogPosition | None
    heard_at: datetime
    asked_at: float = 0.0
    stale: tuple[float, datetime] | None = None


class _Question:
    """A question for the positions of some agents, with its answer once there is one."""

    def __init__(self) -> None:
        self.agents: set[str] = set()
        self.answer: dict[str, LogPosition] | None = None


class Positions:
    """Asks for the positions of agents, on a connection of its own. Thread-safe.

    Threads that ask while an answer is awaited share the next question. While the server is away,
    the last known positions are given out, as stale, for a limited time; a thread connects again.

    Args:
        target: The database.
        read: Reads an agent's position in another way, where there is no connection yet, and
            nothing is known.
    """

    def __init__(self, target: Target, read: Callable[[str], LogPosition]) -> None:
        self._target = target
        self._read = read
        self._changed = Condition(InnerLock())
        self._holder: object = None  # whoever uses the connection
        self._known: dict[str, _Known] = {}
        self._question = _Question()
        self._connection: Connection | None = None
        self._is_away = False  # whether the last attempt to connect failed, or an answer did
        self._is_closed = False
        self._thread = Background("positions")

    def stale_since(self, agent_id: str, reads_since: float | None) -> datetime | None:
        """Return since when changes of other processes may be missing; None if none can be.

        Whoever asks about reads to come reads what is stale, if it is: a later look at those reads
        says so, though the server is back.

        Args:
            agent_id: Of this agent.
            reads_since: In reads from this moment on, of `time.monotonic()`, until now; None asks
                about reads to come.
        """
        known = self._known.get(agent_id)
        if known is None:
            return None
        if reads_since is not None and known.stale and known.stale[0] >= reads_since:
            return known.stale[1]
        if self._connection is not None or known.position is None:  # else it cannot be read
            return None
        known.stale = time.monotonic(), known.heard_at
        return known.heard_at

    def known(self, agent_id: str) -> LogPosition | None:
        """Return an agent's position as far as searches have asked; None if none has."""
        known = self._known.get(agent_id)
        return None if known is None else known.position

    def latest(self, agent_id: str, max_stale: float, deadline: float | None = None) -> LogPosition:
        """Return an agent's position: it has every commit that was acknowledged before this call.

        Args:
            agent_id: The agent.
            max_stale: Maximum seconds since it was current, where the server does not answer.
            deadline: Limit in seconds of `time.monotonic()`.

        Raises:
            DeadlineExceededError: If the deadline passes.
            StoreUnavailableError: If the server is away, and was for longer.
        """
        with self._changed:
            if not self._is_closed:
                self._thread.begin(self._run)
        ends = time.monotonic() + ANSWER_SECONDS
        for _ in range(_ATTEMPTS):
            if self._awaits_connection():
                limit = ends if deadline is None else min(ends, deadline)
                with settling():  # a signal handler would wait for the answer that it holds up
                    found = self._asked(agent_id, limit)
                check_deadline(deadline)
                if found is not None:
                    return found
        known = self._known.get(agent_id)
        position = None if known is None else known.position
        if known is None or position is None:
            heard_at, found = datetime.now(UTC), self._read(agent_id)
            return self._take(agent_id, found, None, heard_at)
        age = (datetime.now(UTC) - known.heard_at).total_seconds()
        if age > max_stale:
            raise StoreUnavailableError(
                f"{self._target.shown}: the server has not been heard of for {age:.0f} s, and "
                f"max_stale is {max_stale:g} s; try again once it can be reached"
            )
        known.stale = time.monotonic(), known.heard_at
        return position

    def _awaits_connection(self) -> bool:
        """Wait a moment for a connection that was lost, or not made yet; return if there is one."""
        if self._connection is None and not self._is_away:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._connection is not None or self._is_away, _RECONNECTING
                )
        return self._connection is not None

    def _asked(self, agent_id: str, ends: float) -> LogPosition | None:
        """Ask for a position, together with others; return None if there is no answer in time."""
        before, heard_at = self.known(agent_id), datetime.now(UTC)
        with self._changed:
            question = self._question
            question.agents.add(agent_id)
        self._in_turn(ends, lambda connection: self._put(question, connection, ends))
        if question.answer is None:
            return None
        found = question.answer.get(agent_id, _BEGINNING)
        return self._take(agent_id, found, before, heard_at)

    def _take(
        self, agent_id: str, found: LogPosition, before: LogPosition | None, heard_at: datetime
    ) -> LogPosition:
        """Take an answer in; return the position to search at.

        It may be behind a commit of this process that was made meanwhile. If it is behind what was
        known before the question, the server has lost commits, as a replica may that took over: it
        is believed.
        """
        with self._changed:
            known = self._known.setdefault(agent_id, _Known(found, heard_at))
            is_behind = before is not None and found.seq < before.seq
            unless_lost = None if is_behind else known.position
            position = known.position = _later(unless_lost, found)
            if position == found:
                known.heard_at = heard_at
            known.asked_at = time.monotonic()
            return position

    def _put(self, question: _Question, connection: Connection, ends: float) -> None:
        """Put a question to the server, unless another thread has."""
        if question.answer is not None:
            return
        with self._changed:  # who asks from now on may have seen a later commit
            if self._question is question:
                self._question = _Question()
        question.answer = self._answer(connection, question.agents, ends)

    def _in_turn(self, ends: float, work: Callable[[Connection], None]) -> None:
        """Use the connection alone; close it if it fails, for an answer may be on its way."""
        mine = object()  # noted within the block, so that a KeyboardInterrupt leaves no holder
        try:
            with self._changed:
                left = ends - time.monotonic()
                self._changed.wait_for(lambda: self._holder is None, max(0.0, left))
                connection = self._connection
                if self._holder is not None or connection is None:
                    return
                self._holder = mine
            self._use(connection, work)
        finally:
            with self._changed:
                if self._holder is mine:
                    self._holder = None
                    self._changed.notify_all()

    def _use(self, connection: Connection, work: Callable[[Connection], None]) -> None:
        try:
            work(connection)
        except BaseException as error:
            connection.close()
            self._become(None, is_away=isinstance(error, TimeoutError))
            if not isinstance(error, (psycopg.Error, TimeoutError)):
                raise
            _log.info("The server does not answer: %s", type(error).__name__)

    def advance(self, positions: Mapping[str, LogPosition]) -> None:
        """Take in positions that a commit of this process has reached, or a read has found."""
        with self._changed:
            for agent_id, position in positions.items():
                known = self._known.get(agent_id)
                if known is not None and known.position is not None:
                    known.position = _later(known.position, position)

    def forget(self, agents: Iterable[str]) -> None:
        """Know nothing of agents: a commit may have moved them, or not."""
        with self._changed:
            for agent_id in agents:
                known = self._known.get(agent_id)
                if known is not None:  # searches under way still ask whether they were stale
                    known.position = None

    def _run(self) -> None:
        pause = 0.0
        while not self._is_closed:
            if self._connection is None and not self._connects():
                self._wait(pause)
                pause = min(_MAX_PAUSE, 2 * pause + 0.05)
                continue
            pause = 0.0
            self._wait(BEAT_SECONDS, while_connected=True)
            if not self._is_closed:
                self._in_turn(time.monotonic() + ANSWER_SECONDS, self._beat)

    def _connects(self) -> bool:
        """Make a connection; return whether that was possible."""
        try:
            connection = Connection.connect(self._target.conninfo, autocommit=True)
        except Exception as error:  # noqa: BLE001 - without this thread all would stay stale
            _log.info("The server cannot be reached: %s", type(error).__name__)
            self._become(None, is_away=True)
            return False
        self._become(connection, is_away=False)
        return True

    def _become(self, connection: Connection | None, *, is_away: bool) -> None:
        """Take another connection, or none; a server that is not away is being connected to."""
        with self._changed:
            self._connection, self._is_away = connection, is_away
            self._changed.notify_all()

    def _beat(self, connection: Connection) -> None:
        """Note which known positions are current; no search has the others yet."""
        recent = time.monotonic() - _ASKED_SECONDS
        with self._changed:
            agents = {name for name, known in self._known.items() if known.asked_at >= recent}
        heard_at = datetime.now(UTC)
        found = self._answer(connection, agents, time.monotonic() + ANSWER_SECONDS)
        with self._changed:
            for agent_id in agents:
                known = self._known.get(agent_id)
                if known is not None and known.position == found.get(agent_id, _BEGINNING):
                    known.heard_at = heard_at

    def _answer(
        self, connection: Connection, agents: Collection[str], ends: float
    ) -> dict[str, LogPosition]:
        """Return the positions of those of these agents that have stored anything.

        Raises:
            TimeoutError: If there is no answer by a time of `time.monotonic()`.
        """
        # Statements of one message, and so of one transaction and one round trip.
        rows = _result(connection, ends, f"{naming(connection, sorted(agents))}; {_QUESTION}")
        return {
            _text(rows, at, 0): LogPosition(int(_text(rows, at, 1)), int(_text(rows, at, 2)))
            for at in range(rows.ntuples)
        }

    def _wait(self, seconds: float, *, while_connected: bool = False) -> None:
        """Wait for some time, for the end of all, or for that of the connection."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed or (while_connected and self._connection is None), seconds
            )

    def close(self) -> None:
        """Ask nothing more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(ANSWER_SECONDS)  # it may wait for a server that hangs, and ends later
        connection = self._connection
        if connection is not None:
            connection.close()


def _text(rows: "PGresult", row: int, column: int) -> str:
    return (rows.get_value(row, column) or b"").decode()


def _result(connection: Connection, ends: float, query: str) -> "PGresult":
    """Run statements; return the last one's result.

    Raises:
        TimeoutError: If it is not there by a time of `time.monotonic()`.
    """
    pgconn = connection.pgconn
    if pgconn.transaction_status != TransactionStatus.IDLE:
        raise TimeoutError  # a KeyboardInterrupt has left an answer
    pgconn.send_query(query.encode())
    results: list[PGresult] = []
    while True:
        while (unsent := pgconn.flush()) or pgconn.is_busy():
            _await_socket(pgconn.socket, ends, for_writing=bool(unsent))
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            return results[-1]
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)
        results.append(result)


def _await_socket(socket: int, ends: float, *, for_writing: bool) -> None:
    event = selectors.EVENT_WRITE if for_writing else selectors.EVENT_READ
    with selectors.DefaultSelector() as selector:
        selector.register(socket, event)
        if not selector.select(max(0.0, ends - time.monotonic())):
            raise TimeoutError


def _later(one: LogPosition | None, other: LogPosition) -> LogPosition:
    if one is None:
        return other
    return LogPosition(max(one.seq, other.seq), max(one.accesses, other.accesses))
