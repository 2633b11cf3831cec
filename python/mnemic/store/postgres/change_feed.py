"""The feed of changes: positions of agents, kept current by notifications of the server."""

import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Final

import psycopg

from mnemic.errors import StoreUnavailableError
from mnemic.reporting.logs import logger
from mnemic.store.postgres.notifications import CHANNEL, digest_of, parsed
from mnemic.store.postgres.session import Connection, Session, prepare
from mnemic.store.postgres.target import Target
from mnemic.store.values import LogPosition
from mnemic.threads.conditions import Condition
from mnemic.threads.locks import InnerLock

BEAT_SECONDS: Final = 3.0
"""Seconds between two notifications of a feed to itself, which show that the connection works; one
that is not back after as long is lost, and the connection with it."""

_SILENT_SECONDS: Final = 60.0
"""Seconds between two attempts to be notified where notifications did not arrive."""

_MAX_PAUSE: Final = 1.0
"""Maximum seconds between two attempts to connect."""

_RECONNECTING: Final = 0.1
"""Seconds that a reader waits for a lost connection to come back before it reads stale data."""

_CATCHING_UP: Final = 10.0
"""Seconds that a reader waits for the changes since a connection was lost."""

_log = logger(__name__)


class _State(Enum):
    """What is known of the connection.

    Attributes:
        IDLE: It was not asked for yet.
        CONNECTING: It was lost, or never made, and the next attempt has no result yet.
        CATCHING_UP: It is there; changes of the time without it are being read.
        LIVE: Every commit is received.
        DOWN: The last attempt failed.
        SILENT: Connections work, but notifications do not arrive, as through PgBouncer.
    """

    IDLE = auto()
    CONNECTING = auto()
    CATCHING_UP = auto()
    LIVE = auto()
    DOWN = auto()
    SILENT = auto()


class ChangeFeed:
    """Listens for the commits of all processes in a thread of its own. Thread-safe.

    Positions of agents that were asked for once are known without a round trip until a notification
    says that one has moved. It is not taken for the new position, for any role of the database can
    send one: the server is asked. After the connection was lost, the last known positions are given
    out, as stale, for a limited time; once it is there again, not before all were reread.

    Args:
        target: The database.
        read_positions: Reads the positions of agents on the feed's connection.
    """

    def __init__(
        self,
        target: Target,
        read_positions: Callable[[Session, list[str]], dict[str, LogPosition]],
    ) -> None:
        self._target = target
        self._read_positions = read_positions
        self._lock = Condition(InnerLock())
        self._state = _State.IDLE
        self._positions: dict[str, LogPosition] = {}
        self._moved: dict[str, LogPosition] = {}  # received, and not asked for yet
        self._agents: dict[str, str] = {}  # by digest
        self._last_answer_at: datetime | None = None
        self._connections = 0  # made so far
        self._heartbeat = _Heartbeat()
        self._is_closed = False
        self._woken, self._wake = socket.socketpair()
        self._thread: threading.Thread | None = None

    @property
    def stale_since(self) -> datetime | None:
        """Since when changes of other processes may be missing; None while none can be."""
        is_stale = (
            self._state in (_State.DOWN, _State.CONNECTING) and self._last_answer_at is not None
        )
        return self._last_answer_at if is_stale else None

    @property
    def is_live(self) -> bool:
        """Whether every commit is received."""
        return self._state is _State.LIVE

    def position(
        self, agent_id: str, ask: Callable[[], LogPosition], max_stale: float
    ) -> LogPosition:
        """Return an agent's position.

        Args:
            agent_id: The agent.
            ask: Reads it from the server.
            max_stale: Maximum seconds since the last sign of the server.

        Raises:
            StoreUnavailableError: If the server is unreachable for longer.
        """
        if self._state is _State.LIVE and agent_id not in self._moved:
            known = self._positions.get(agent_id)
            if known is not None:
                return known
        known = self._known(agent_id, max_stale)
        if known is not None:
            return known
        connections, moved = self._connections, self._moved.get(agent_id)
        found = ask()
        with self._lock:
            # Of another connection, this agent's changes before its position were not read.
            if self._state is not _State.LIVE or self._connections == connections:
                self._advance(agent_id, found)
            if self._moved.get(agent_id) == moved:  # else it has moved again
                self._moved.pop(agent_id, None)
        return found

    def _known(self, agent_id: str, max_stale: float) -> LogPosition | None:
        """Return a position that needs no round trip; None if there is none."""
        with self._lock:
            self._start()
            known = self._positions.get(agent_id)
            if known is None or self._last_answer_at is None or self._state is _State.SILENT:
                return None
            self._await_connection()
            if self._state is _State.LIVE:
                return None if agent_id in self._moved else self._positions.get(agent_id)
            self._check_age(max_stale)
            return known

    def _await_connection(self) -> None:
        self._lock.wait_for(lambda: self._state is not _State.CONNECTING, _RECONNECTING)
        self._lock.wait_for(lambda: self._state is not _State.CATCHING_UP, _CATCHING_UP)

    def _check_age(self, max_stale: float) -> None:
        assert self._last_answer_at is not None  # noqa: S101 - its caller knows
        age = (datetime.now(UTC) - self._last_answer_at).total_seconds()
        if age > max_stale or self._state is _State.CATCHING_UP:
            raise StoreUnavailableError(
                f"{self._target.shown}: the server has not answered for {age:.0f} s, and "
                f"max_stale is {max_stale:g} s; try again once it can be reached"
            )

    def advance(self, positions: Mapping[str, LogPosition]) -> None:
        """Take in positions that a commit of this process has reached."""
        with self._lock:
            for agent_id, position in positions.items():
                if agent_id in self._positions:
                    self._advance(agent_id, position)

    def forget(self, agents: Iterable[str]) -> None:
        """Ask for the positions of agents again: a commit may have moved them, or not."""
        with self._lock:
            for agent_id in agents:
                self._positions.pop(agent_id, None)

    def _advance(self, agent_id: str, position: LogPosition) -> None:
        known = self._positions.get(agent_id)
        if known is None:
            self._agents[digest_of(agent_id)] = agent_id
            known = position
        self._positions[agent_id] = _later(known, position)
        moved = self._moved.get(agent_id)
        if moved is not None and not _is_beyond(moved, self._positions[agent_id]):
            del self._moved[agent_id]

    def _start(self) -> None:
        is_running = self._thread is not None and self._thread.is_alive()
        if not is_running and not self._is_closed:
            self._state = _State.CONNECTING
            self._thread = threading.Thread(target=self._run, name="mnemic-feed", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with self._lock:
            if self._thread is not threading.current_thread():  # its start was interrupted
                return
        pause = 0.0
        while not self._is_closed:
            made = self._connections
            try:
                with psycopg.connect(self._target.conninfo, autocommit=True) as connection:
                    prepare(connection)
                    self._follow(connection)
            except Exception as error:  # noqa: BLE001 - without this thread, changes would be missed
                _log.info("The change feed is interrupted: %s", type(error).__name__)
            if self._connections > made:  # it had caught up, and was lost later
                pause = 0.0
            self._interrupt(is_first=pause == 0.0)
            self._wait(pause)
            pause = min(_MAX_PAUSE, 2 * pause + 0.05)

    def _interrupt(self, *, is_first: bool) -> None:
        """Record that there is no connection; it is down once an attempt to make one failed."""
        with self._lock:
            if self._state is not _State.SILENT:
                self._state = _State.CONNECTING if is_first else _State.DOWN
            self._lock.notify_all()

    def _wait(self, seconds: float) -> None:
        if not self._is_closed:
            _await_data(self._woken, seconds=seconds)

    def _follow(self, connection: Connection) -> None:
        """Catch up, and take in notifications until the connection is lost or the feed closed."""
        if self._state is not _State.SILENT:
            self._enter(_State.CATCHING_UP)
        session = Session(connection)
        connection.add_notify_handler(
            lambda notification: self._on_notification(notification.channel, notification.payload)
        )
        session.run(f"LISTEN {CHANNEL}")
        session.run(f"LISTEN {self._heartbeat.channel}")
        self._heartbeat.sent()
        session.run(f"NOTIFY {self._heartbeat.channel}")
        while not self._is_closed:
            self._receive(connection)
            if self._heartbeat.is_lost():
                self._give_up_notifications()
                return
            if self._heartbeat.is_back() and self._state is not _State.LIVE:
                self._catch_up(session)
                continue  # notifications may have come with the answers
            if self._heartbeat.is_due():
                self._heartbeat.sent()
                connection.pgconn.send_query(f"NOTIFY {self._heartbeat.channel}".encode())
                connection.pgconn.flush()
            _await_data(connection, self._woken, seconds=self._heartbeat.left())

    def _enter(self, state: _State) -> None:
        with self._lock:
            self._state = state
            self._lock.notify_all()

    def _receive(self, connection: Connection) -> None:
        pgconn = connection.pgconn
        pgconn.consume_input()
        while not pgconn.is_busy() and pgconn.get_result() is not None:
            pass
        while (notification := pgconn.notifies()) is not None:
            self._on_notification(notification.relname.decode(), notification.extra.decode())

    def _give_up_notifications(self) -> None:
        """Give notifications up on this connection, which may be a pool's in between."""
        if self._state is _State.LIVE:  # it is only lost
            self._enter(_State.CONNECTING)
            return
        _log.warning(
            "%s: notifications do not arrive; each search asks the server for changes",
            self._target.shown,
        )
        self._enter(_State.SILENT)
        self._wait(_SILENT_SECONDS)

    def _catch_up(self, session: Session) -> None:
        """Read the positions of all known agents, also of those that come in meanwhile."""
        read: set[str] = set()
        while True:
            with self._lock:
                known = dict(self._positions)
                left = [agent_id for agent_id in known if agent_id not in read]
                if not left:
                    self._last_answer_at = datetime.now(UTC)
                    self._connections += 1
                    self._state = _State.LIVE
                    self._lock.notify_all()
                    return
            read.update(left)
            found = self._read_positions(session, left)
            with self._lock:
                for agent_id in left:
                    if agent_id not in self._positions:  # forgotten meanwhile
                        continue
                    position = found.get(agent_id, LogPosition(0, 0))
                    # A server that lost commits, as a replica may that took over, is believed.
                    if position.seq < known[agent_id].seq:
                        self._positions[agent_id] = position
                    else:
                        self._advance(agent_id, position)

    def _on_notification(self, channel: str, payload: str) -> None:
        if self._state is _State.LIVE:  # until it has caught up, changes may be missing
            self._last_answer_at = datetime.now(UTC)
        if channel == self._heartbeat.channel:
            self._heartbeat.returned()
            return
        notification = parsed(payload)
        agent_id = None if notification is None else self._agents.get(notification.digest)
        if notification is not None and agent_id is not None:
            self._note(agent_id, notification.position)

    def _note(self, agent_id: str, position: LogPosition) -> None:
        """Note that an agent has moved, unless that is known, as of this process's own commits."""
        with self._lock:
            known = self._positions.get(agent_id)
            if known is not None and _is_beyond(position, known):
                self._moved[agent_id] = _later(self._moved.get(agent_id, position), position)

    def close(self) -> None:
        """Stop listening."""
        with self._lock:
            self._is_closed = True
        self._wake.close()
        thread = self._thread
        # One whose start was interrupted is not alive, cannot be joined, and ends by itself.
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join()
        self._woken.close()


def _later(one: LogPosition, other: LogPosition) -> LogPosition:
    return LogPosition(max(one.seq, other.seq), max(one.accesses, other.accesses))


def _is_beyond(position: LogPosition, known: LogPosition) -> bool:
    return position.seq > known.seq or position.accesses > known.accesses


def _await_data(*sources: Connection | socket.socket, seconds: float) -> None:
    """Wait until a socket can be read, or for some time."""
    with selectors.DefaultSelector() as selector:
        for each in sources:
            selector.register(each, selectors.EVENT_READ)
        selector.select(seconds)


class _Heartbeat:
    """Notifications of a connection to itself, one after the other.

    Attributes:
        channel: Channel that this feed alone listens on.
    """

    def __init__(self) -> None:
        self.channel = f"mnemic_{secrets.token_hex(8)}"
        self._sent_at = 0.0
        self._is_back = False

    def sent(self) -> None:
        """Record that one was sent."""
        self._sent_at, self._is_back = time.monotonic(), False

    def returned(self) -> None:
        """Record that it has come back."""
        self._is_back = True

    def is_back(self) -> bool:
        """Return whether the last one has come back."""
        return self._is_back

    def left(self) -> float:
        """Return the seconds until the next one is due, or the last one counts as lost."""
        return max(0.0, self._sent_at + BEAT_SECONDS - time.monotonic())

    def is_due(self) -> bool:
        """Return whether it is time for the next one."""
        return self._is_back and not self.left()

    def is_lost(self) -> bool:
        """Return whether the last one should have come back by now."""
        return not self._is_back and not self.left()
