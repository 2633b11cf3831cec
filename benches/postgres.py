"""A memory in PostgreSQL, beside one in a file and SQL on pgvector: `python -m benches.postgres`.

Name parts to run only these: add, add_many, live_index, visibility, ranking, cold, pool. A server
of its own is started, with every commit flushed to the disk, on a Unix socket. Embeddings have 384
dimensions and take no time. Medians and 95th percentiles in milliseconds.
"""

import sys
import tempfile
import time
import zlib
from pathlib import Path
from subprocess import PIPE, Popen

import numpy as np
import psycopg

from mnemic import IndexPool, Memory
from tests.support.postgres_server import Server

DIMENSIONS = 384
DURABLE = {"fsync": "on", "synchronous_commit": "on", "autovacuum": "on"}
USERS = [f"user {at}" for at in range(10)]
QUESTIONS = [f"note {at} of apples and pears" for at in range(100)]


def drawn(texts):
    """Return a vector for each text, of no meaning and always the same."""
    return [
        np.random.default_rng(zlib.crc32(text.encode())).standard_normal(DIMENSIONS)
        for text in texts
    ]


def opened(place, agent="a", **options):
    options.setdefault("embedder", drawn)
    options.setdefault("embedding_model", "drawn")
    return Memory(place, agent, **options)


def notes(first, number):
    return [
        f"note {at} about {'pears ' * (at % 30)}and apples" for at in range(first, first + number)
    ]


def milliseconds(call, *arguments, **options):
    begun = time.perf_counter()
    call(*arguments, **options)
    return (time.perf_counter() - begun) * 1e3


def spread(times):
    """Return median and 95th percentile."""
    return f"p50 {np.median(times):7.2f} ms   p95 {np.quantile(times, 0.95):7.2f} ms"


class PlainSql:
    """A table of texts, metadata and vectors as a user of pgvector writes it, with an index."""

    def __init__(self, url, *, has_index):
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        self.connection.execute("DROP TABLE IF EXISTS notes")
        self.connection.execute(
            "CREATE TABLE notes (id bigserial PRIMARY KEY, user_id text, content text, data jsonb, "
            f"embedding vector({DIMENSIONS}))"
        )
        self.connection.execute("CREATE INDEX ON notes (user_id)")
        if has_index:
            self.connection.execute(
                "CREATE INDEX ON notes USING hnsw (embedding vector_cosine_ops)"
            )

    def add(self, text, user_id=None):
        self.add_many([text], user_id)

    def add_many(self, texts, user_id=None):
        rows = [
            (user_id, text, "{}", str(vector.tolist()))
            for text, vector in zip(texts, drawn(texts), strict=True)
        ]
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO notes (user_id, content, data, embedding) VALUES (%s, %s, %s, %s)",
                rows,
            )

    def search(self, text, user_id=None, limit=10):
        (vector,) = drawn([text])
        return self.connection.execute(
            "SELECT id, content, 1 - (embedding <=> %s::vector) FROM notes WHERE user_id = %s "
            "ORDER BY embedding <=> %s::vector LIMIT %s",
            (str(vector.tolist()), user_id, str(vector.tolist()), limit),
        ).fetchall()


def add(server):
    """One durable write after the other: wanted are 3 ms at most."""
    systems = {
        "mnemic": opened(server.new_database()),
        "mnemic without vectors": opened(
            server.new_database(), embedder=None, embedding_model=None
        ),
        "pgvector, HNSW": PlainSql(server.new_database(), has_index=True),
        "pgvector, no index": PlainSql(server.new_database(), has_index=False),
    }
    times = {name: [] for name in systems}
    for text in notes(0, 300):
        for name, system in systems.items():
            times[name].append(milliseconds(system.add, text))
    for name, found in times.items():
        print(f"  {name:28} {spread(found[20:])}")
    close(systems)


def add_many(server):
    """Ten thousand at once: wanted are 5,000 a second."""
    systems = {
        "mnemic": opened(server.new_database()),
        "pgvector, no index": PlainSql(server.new_database(), has_index=False),
    }
    texts = notes(0, 10_000)
    embedding = milliseconds(drawn, texts)
    for name, system in systems.items():
        taken = milliseconds(system.add_many, texts) - embedding
        print(f"  {name:28} {10_000 / taken * 1e3:9,.0f} entries/s")
    hnsw = PlainSql(server.new_database(), has_index=True)
    taken = milliseconds(hnsw.add_many, texts[:2000])
    print(f"  {'pgvector, HNSW, of 2,000':28} {2_000 / taken * 1e3:9,.0f} entries/s")
    close(systems)


WRITER = """
import sys, time
from mnemic import Memory
with Memory(sys.argv[1], "a", embedder=None) as memory:
    print("ready", flush=True)
    for line in sys.stdin:
        memory.add("the word " + line.strip())
        print(time.monotonic(), flush=True)
"""


def visibility(server):
    """From the end of an add in one process to an answer of another: wanted are 50 ms."""
    url = server.new_database()
    times = []
    with opened(url, embedder=None, embedding_model=None) as memory:
        memory.add("begin")
        memory.search("begin", search_type="keyword")
        writer = Popen([sys.executable, "-c", WRITER, url], stdin=PIPE, stdout=PIPE, text=True)  # noqa: S603
        writer.stdout.readline()
        for at in range(100):
            word = f"w{at:03d}w"
            writer.stdin.write(word + "\n")
            writer.stdin.flush()
            while not memory.search(word, search_type="keyword"):
                pass
            seen = time.monotonic()
            times.append(max(0.0, seen - float(writer.stdout.readline())) * 1e3)
        writer.stdin.close()
        writer.wait()
    print(f"  {'searched without a pause':28} {spread(times)}")


def ranking(server):
    """One user of ten of 10,000 memories, k = 10: wanted is a ratio of 1.10 to a file."""
    with tempfile.TemporaryDirectory() as folder:
        systems = {
            "mnemic, PostgreSQL": opened(server.new_database(), track_access=False),
            "mnemic, SQLite": opened(Path(folder) / "a.db", track_access=False),
            "pgvector, no index": PlainSql(server.new_database(), has_index=False),
        }
        for at, user in enumerate(USERS):
            for system in systems.values():
                system.add_many(notes(1000 * at, 1000), user_id=user)
        times = {name: [] for name in systems}
        draw = np.random.default_rng(0)
        for turn in range(5):
            for question in QUESTIONS:
                # In any order: the server's work empties the processor's caches for who follows.
                for name in draw.permutation(list(systems)):
                    system = systems[name]
                    taken = milliseconds(system.search, question, user_id=USERS[3], limit=10)
                    if turn:
                        times[name].append(taken)
        for name, found in times.items():
            print(f"  {name:28} {spread(found)}")
        ratio = np.median(times["mnemic, PostgreSQL"]) / np.median(times["mnemic, SQLite"])
        print(f"  {'PostgreSQL : SQLite':28} {ratio:.2f}")
        close(systems)


def cold(server):
    """A semantic search of one agent's 1,000 memories among 100,000: wanted are 3 ms.

    The index is never loaded; every memory of the agent is compared.
    """
    url, plain = server.new_database(), PlainSql(server.new_database(), has_index=False)
    with opened(url, "agent 0") as first:
        first.add_many(notes(0, MEMORIES))
    _copy_agents(url, 100)
    plain.add_many(notes(0, MEMORIES), user_id="agent 0")
    plain.connection.execute(
        "INSERT INTO notes (user_id, content, data, embedding) SELECT 'agent ' || n, content, "
        "data, embedding FROM notes, generate_series(1, 99) AS n"
    )
    plain.connection.execute("VACUUM ANALYZE")
    agent = "agent 42"
    options = {"embedder": None, "track_access": False}
    memory = opened(url, agent, search_in="database", **options)
    warm = opened(url, agent, search_in="memory", **options)
    ask = {"search_type": "semantic", "limit": 10}
    calls = {
        "semantic, in the database": lambda _, vector: memory.search(vector=vector, **ask),
        "semantic, in memory": lambda _, vector: warm.search(vector=vector, **ask),
        "pgvector, no index": lambda text, _: plain.search(text, user_id=agent),
    }
    times = {name: [] for name in calls}
    draw = np.random.default_rng(0)
    for turn in range(3):
        for text, vector in zip(QUESTIONS, drawn(QUESTIONS), strict=True):
            for name in draw.permutation(list(calls)):
                taken = milliseconds(calls[name], text, vector)
                if turn:
                    times[name].append(taken)
    asked = list(zip(QUESTIONS, drawn(QUESTIONS), strict=True))
    times["hybrid, in the database"] = [
        milliseconds(memory.search, text, vector=vector) for text, vector in asked
    ]
    for name, found in times.items():
        print(f"  {name:28} {spread(found)}")
    close({"memory": memory, "warm": warm, "plain": plain})


def live_index(server):
    """Ten thousand at once where an HNSW index of 10,000 is live: wanted are 300 a second."""
    texts = notes(0, 20_000)
    with opened(server.new_database()) as memory:
        memory.add_many(texts[:10_000])
        built = milliseconds(memory.create_vector_index)
        embedding = milliseconds(drawn, texts[10_000:])
        taken = milliseconds(memory.add_many, texts[10_000:]) - embedding
        print(f"  {'mnemic':28} {10_000 / taken * 1e3:9,.0f} entries/s (built in {built:,.0f} ms)")
    plain = PlainSql(server.new_database(), has_index=True)
    plain.add_many(texts[:10_000])
    taken = milliseconds(plain.add_many, texts[10_000:12_000]) - embedding / 5
    print(f"  {'pgvector, HNSW, of 2,000':28} {2_000 / taken * 1e3:9,.0f} entries/s")
    plain.connection.close()


AGENTS, MEMORIES, HELD, SEARCHES = 1000, 1000, 100, 3000


def pool(server):
    """1,000 agents of 1,000 memories, room for 100, drawn by Zipf's law of exponent 1.

    Wanted are hits of 2 ms and misses of 60 ms at the 95th percentile, a hit rate within 10 points
    of the best possible, and a budget exceeded by one agent at most.
    """
    url = server.new_database()
    with opened(url, "agent 0") as first:
        first.add_many(notes(0, MEMORIES))
        first.search("apples")
        size = first.repository._indexes.active.nbytes  # noqa: SLF001
    _copy_agents(url, AGENTS)
    shared = IndexPool(max_bytes=HELD * size)
    memories = [
        opened(url, f"agent {at}", embedder=None, index_pool=shared, track_access=False)
        for at in range(AGENTS)
    ]
    shares = 1 / np.arange(1, AGENTS + 1)
    chosen = np.random.default_rng(0).choice(AGENTS, SEARCHES, p=shares / shares.sum())
    queries = drawn(QUESTIONS)
    hits, misses, most, best = [], [], 0, 0
    for turn, at in enumerate(chosen):
        is_hit = memories[at].repository._indexes.active.is_loaded  # noqa: SLF001
        vector = queries[turn % len(queries)]
        taken = milliseconds(memories[at].search, vector=vector, limit=10)
        most = max(most, shared.nbytes)
        if turn >= SEARCHES // 3:
            (hits if is_hit else misses).append(taken)
            best += at < HELD
    rate, possible = len(hits) / (len(hits) + len(misses)), best / (len(hits) + len(misses))
    print(f"  {'hits':28} {spread(hits)}")
    print(f"  {'misses':28} {spread(misses)}")
    print(f"  {'hit rate':28} {rate:.3f}, of {possible:.3f} with the most used ones kept")
    print(f"  {'most bytes over the budget':28} {(most - shared.max_bytes) / size:.2f} agents")
    for memory in memories:
        memory.close()


def _copy_agents(url, agents):
    """Copy the memories of the first agent to all others, with new rows."""
    tables = {
        "agents": "seq, pruned, accesses, used_bytes, model, dimensions",
        "walls": "user_key, revision, used_bytes",
    }
    with psycopg.connect(url, autocommit=True) as connection:
        numbers = f"generate_series(1, {agents - 1}) AS n"
        for table, columns in tables.items():
            connection.execute(
                f"INSERT INTO mnemic.agent_memory_{table} (agent_id, {columns}) "  # noqa: S608
                f"SELECT 'agent ' || n, {columns} FROM mnemic.agent_memory_{table}, {numbers}"
            )
        found = connection.execute(
            "SELECT string_agg(column_name, ', ') FROM information_schema.columns "
            "WHERE table_schema = 'mnemic' AND table_name = 'agent_memory_entries' "
            "AND column_name NOT IN ('row', 'agent_id')"
        ).fetchone()
        connection.execute(
            f"INSERT INTO mnemic.agent_memory_entries (agent_id, row, {found[0]}) "  # noqa: S608
            f"SELECT 'agent ' || n, row + n * 1000000::bigint, {found[0]} "
            f"FROM mnemic.agent_memory_entries, {numbers}"
        )
        columns = "model, is_companion, part, created_at, embedding"
        connection.execute(
            f"INSERT INTO mnemic.agent_memory_embeddings (agent_id, entry_row, {columns}) "  # noqa: S608
            f"SELECT 'agent ' || n, entry_row + n * 1000000::bigint, {columns} "
            f"FROM mnemic.agent_memory_embeddings, {numbers}"
        )
        connection.execute("VACUUM ANALYZE")


def close(systems):
    for system in systems.values():
        if isinstance(system, Memory):
            system.close()
        else:
            system.connection.close()


PARTS = (add, add_many, live_index, visibility, ranking, cold, pool)


def main():
    wanted = sys.argv[1:] or [part.__name__ for part in PARTS]
    server = Server(**DURABLE)
    try:
        for part in PARTS:
            if part.__name__ in wanted:
                print(f"{part.__name__}: {part.__doc__.splitlines()[0]}", flush=True)
                part(server)
    finally:
        server.close()


if __name__ == "__main__":
    main()
