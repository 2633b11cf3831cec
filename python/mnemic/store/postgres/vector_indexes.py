"""HNSW indexes of pgvector: one for each leaf partition, model and dimension."""

import hashlib
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

import psycopg
from psycopg import sql

from mnemic.errors import MnemicError, StoreClosedError
from mnemic.reporting.logs import logger
from mnemic.store.postgres.connections import connected
from mnemic.store.postgres.postgres_errors import with_typed_errors
from mnemic.store.postgres.schema import naming
from mnemic.store.postgres.session import CANCEL_SECONDS, Connection, Session
from mnemic.store.postgres.target import Target
from mnemic.store.values import Model
from mnemic.threads.background import Background
from mnemic.threads.locks import Lock

_log = logger(__name__)

_MAX_HALFVEC: Final = 4000
"""Most dimensions that pgvector indexes. In half precision an addition takes a tenth less time than
in single precision, and an index half the space, with the same recall."""

_RETRY_AFTER: Final = 600.0
"""Seconds after which an index that could not be built is tried again."""

_PARTITION: Final = """
SELECT c.relname FROM mnemic.agent_memory_embeddings AS v
JOIN pg_catalog.pg_class AS c ON c.oid = v.tableoid WHERE v.agent_id = %s LIMIT 1
"""
_TRY_LOCK: Final = b"SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
_IS_VALID: Final = """
SELECT i.indisvalid AND i.indisready FROM pg_catalog.pg_index AS i
WHERE i.indexrelid = to_regclass(%s)
"""


class VectorIndex(NamedTuple):
    """An index of the vectors of one model and dimension in one partition.

    Attributes:
        partition: Name of the partition.
        name: Name of the index; both are in the schema `mnemic`.
        type: Type of the indexed values.
        expression: The indexed expression, as queries have to repeat it.
        covered: Condition of the model's rows that it has, as queries have to repeat it.
    """

    partition: str
    name: str
    type: str
    expression: str
    covered: str


def vector_index_of(connection: Connection, agent_id: str, model: Model) -> VectorIndex | None:
    """Return the index of an agent's vectors, built or not; None if they cannot have one."""
    name, dimensions = model
    found = connection.execute(_PARTITION.encode(), (agent_id,)).fetchall()
    if dimensions > _MAX_HALFVEC or not found:
        return None
    of_type = f"{connection.pgvector}.halfvec({dimensions})"
    partition: str = found[0][0]
    digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    return VectorIndex(
        partition=partition,
        name=f"{partition}_{digest}_{dimensions}",
        type=of_type,
        # Half precision ends at 65,504.
        expression=f"({connection.pgvector}.l2_normalize(embedding)::{of_type})",
        covered=(
            f"NOT is_companion AND {connection.pgvector}.vector_dims(embedding) = {dimensions}"
        ),
    )


def _is_valid(connection: Connection, index: VectorIndex) -> bool | None:
    """Return whether an index can be used; None if there is none."""
    found = connection.execute(_IS_VALID.encode(), (f"mnemic.{index.name}",)).fetchall()
    return bool(found[0][0]) if found else None


def find_vector_index(session: Session, agent_id: str, model: Model) -> VectorIndex | None:
    """Return the index of an agent's vectors if it can be used."""
    index = vector_index_of(session.connection, agent_id, model)
    return index if index is not None and _is_valid(session.connection, index) else None


class VectorIndexBuilds:
    """Builds indexes, one at a time, in connections of their own. Thread-safe.

    An index is built beside reads and writes (CONCURRENTLY), and by one process at a time.

    Args:
        target: The database.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._lock = Lock()
        self._connections: set[Connection] = set()
        self._thread = Background("vector-index")
        self._failed_at: dict[tuple[str, Model], float] = {}
        self._is_closed = False

    def build_later(self, agent_id: str, model: Model) -> None:
        """Build the index of an agent's vectors in the background, unless one is being built."""
        with self._lock:
            age = time.monotonic() - self._failed_at.get((agent_id, model), -_RETRY_AFTER)
            if not self._is_closed and age >= _RETRY_AFTER:
                self._thread.begin(self._build_quietly, agent_id, model)

    def _build_quietly(self, agent_id: str, model: Model) -> None:
        try:
            self.build(agent_id, model)
        except MnemicError as error:
            self._failed_at[agent_id, model] = time.monotonic()
            if not self._is_closed:
                _log.warning("An index of vectors could not be built: %s", error)

    def build(self, agent_id: str, model: Model) -> bool:
        """Build the index of an agent's vectors; return whether there is one now."""
        return with_typed_errors(lambda: self._connected_build(agent_id, model), self._target.shown)

    def _connected_build(self, agent_id: str, model: Model) -> bool:
        with connected(self._target) as session, self._listed(session.connection):
            connection = session.connection
            with connection.transaction():
                connection.execute(naming(connection, [agent_id]).encode())
                index = vector_index_of(connection, agent_id, model)
            if index is None:
                return False
            with self._turn(index):
                self._build_anew(connection, index, model[0])
            return True

    @contextmanager
    def _listed(self, connection: Connection) -> Generator[None, None, None]:
        """List a connection among those that `close` cancels."""
        with self._lock:
            if self._is_closed:
                raise StoreClosedError(f"the memory was closed ({self._target.shown})")
            self._connections.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._connections.discard(connection)

    @contextmanager
    def _turn(self, index: VectorIndex) -> Generator[None, None, None]:
        """Let no other process build an index meanwhile.

        The lock is that of a transaction of its own, for CONCURRENTLY runs in none. Between its
        statements it holds no snapshot, which the build would wait for.
        """
        with Connection.connect(self._target.conninfo, prepare_threshold=None) as holder:
            holder.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            while not holder.execute(_TRY_LOCK, (index.name,)).fetchall()[0][0]:
                holder.rollback()
                if self._is_closed:
                    raise StoreClosedError(f"the memory was closed ({self._target.shown})")
                time.sleep(0.2)
            holder.execute(b"SET LOCAL idle_in_transaction_session_timeout = 0")
            yield

    def _build_anew(self, connection: Connection, index: VectorIndex, model: str) -> None:
        """Build an index that is not there, or not valid; for as long as it takes."""
        if not connection.is_pooled:  # there the settings would be other programs', too
            connection.execute(b"SET statement_timeout = 0")
            connection.execute(b"SET lock_timeout = 0")
        is_valid = _is_valid(connection, index)
        if is_valid is False:  # its build was interrupted
            connection.execute(f"DROP INDEX CONCURRENTLY mnemic.{index.name}".encode())
        if not is_valid:
            literal = sql.Literal(model).as_string(connection)
            creation = (
                f"CREATE INDEX CONCURRENTLY {index.name} ON mnemic.{index.partition} "
                f"USING hnsw ({index.expression} {connection.pgvector}.halfvec_cosine_ops) "
                f"WHERE model = {literal} AND {index.covered}"
            )
            connection.execute(creation.encode())

    def close(self) -> None:
        """Cancel what is being built, and wait for its end; an interrupted index is built again."""
        with self._lock:
            self._is_closed = True
            connections = list(self._connections)
        for connection in connections:
            with suppress(psycopg.Error):  # the server is unreachable, and the build with it
                connection.cancel_safe(timeout=CANCEL_SECONDS)
        self._thread.join(CANCEL_SECONDS)
