"""A memory in PostgreSQL beside one in a file, and beside SQL on pgvector.

Run as `python -m benches.postgres [PART …]`; parts are add, add_many, live_index,
visibility, ask, statements, ranking, cold and pool. A server of its own is started, with every
commit flushed to the disk, on a Unix socket. Embeddings have 384 dimensions, no meaning, and take
no time. Medians and 95th percentiles in milliseconds. Recall compares the ten texts of an answer
with the nearest by cosine among the texts asked, found by numpy.
"""

import os
import sys
import tempfile
import time
import zlib
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen
from unittest import mock

import numpy as np
import psycopg
from psycopg.types.json import Jsonb

from mnemic import Memory
from mnemic.vectors import IndexPool
from tests.support.postgres_server import Server

DIMENSIONS = 384
DURABLE = {"fsync": "on", "synchronous_commit": "on", "autovacuum": "on"}
USERS = [f"user {at}" for at in range(10)]
QUESTIONS = [f"note {at} of apples and pears" for at in range(100)]
KINDS, KIND = 7, 3
AGENT = "agent 7"


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


def of_kinds(texts):
    """Return memories whose metadata has one kind of seven."""
    return [{"content": text, "metadata": {"kind": at % KINDS}} for at, text in enumerate(texts)]


def halves(memory):
    """Return text and metadata of what `add_many` takes."""
    return (memory, {}) if isinstance(memory, str) else (memory["content"], memory["metadata"])


def milliseconds(call, *arguments, **options):
    begun = time.perf_counter()
    call(*arguments, **options)
    return (time.perf_counter() - begun) * 1e3


def spread(times):
    """Return median and 95th percentile."""
    return f"p50 {np.median(times):7.2f} ms   p95 {np.quantile(times, 0.95):7.2f} ms"


def nearest(texts, questions):
    """Return the ten texts nearest to each question by cosine."""
    rows, asked = (np.array(drawn(some)) for some in (texts, questions))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    order = np.argsort(asked @ -rows.T, axis=1)[:, :10]
    return [{texts[at] for at in row} for row in order]


def recall(answers, wanted):
    """Return the share of the wanted texts among those of the answers."""
    found = [
        len(set(texts) & some) / len(some) for texts, some in zip(answers, wanted, strict=True)
    ]
    return f"   recall@10 {np.mean(found):.3f}"


def in_turns(calls, asked, rounds):
    """Return the times of all rounds but the first, and the texts found in it, by name.

    The order is drawn for each question: a server's work empties the processor's caches for who
    follows.
    """
    times, answers = ({name: [] for name in calls} for _ in range(2))
    draw = np.random.default_rng(0)
    for turn in range(rounds):
        for arguments in asked:
            for name in draw.permutation(list(calls)):
                begun = time.perf_counter()
                found = calls[name](*arguments)
                taken = (time.perf_counter() - begun) * 1e3
                if turn:
                    times[name].append(taken)
                else:
                    answers[name].append([text_of(one) for one in found])
    return times, answers


def show(times, answers, texts):
    """Print times and recall of searches of these texts; hybrid ones rank by words as well."""
    all_wanted, kind_wanted = (nearest(some, QUESTIONS) for some in (texts, texts[KIND::KINDS]))
    for name, found in times.items():
        wanted = kind_wanted if name.endswith("of a kind") else all_wanted
        share = "" if name.endswith("hybrid") else recall(answers[name], wanted)
        print(f"  {name:44} {spread(found)}{share}")


def text_of(one):
    """Return the text of something found, in either system's form."""
    return one[1] if isinstance(one, tuple) else one.content


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

    def add_many(self, memories, user_id=None):
        texts, data = zip(*map(halves, memories), strict=True)
        rows = [
            (user_id, text, Jsonb(one), str(vector.tolist()))
            for text, one, vector in zip(texts, data, drawn(texts), strict=True)
        ]
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO notes (user_id, content, data, embedding) VALUES (%s, %s, %s, %s)",
                rows,
            )

    def search(self, text, user_id=None, limit=10, kind=None):
        vector = str(drawn([text])[0].tolist())
        only, kinds = ("", []) if kind is None else ("AND data->'kind' = %s ", [Jsonb(kind)])
        return self.connection.execute(
            "SELECT id, content, 1 - (embedding <=> %s::vector) FROM notes WHERE user_id = %s "  # noqa: S608
            f"{only}ORDER BY embedding <=> %s::vector LIMIT %s",
            (vector, user_id, *kinds, vector, limit),
        ).fetchall()

    def gather_statistics(self):
        """Do what the server itself does a minute after much is stored."""
        self.connection.execute("VACUUM ANALYZE")


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
    draw = np.random.default_rng(0)
    for text in notes(0, 300):
        # In any order: each write leaves caches and the log of the server to who follows.
        for name in draw.permutation(list(systems)):
            times[name].append(milliseconds(systems[name].add, text))
    for name, found in times.items():
        print(f"  {name:28} {spread(found[20:])}")
    close(systems)


def add_many(server):
    """Ten thousand at once: wanted are 5,000 a second."""
    texts = notes(0, 10_000)
    embedding = milliseconds(drawn, texts)
    systems = {
        "mnemic": opened(server.new_database()),
        "pgvector, no index": PlainSql(server.new_database(), has_index=False),
        "pgvector, HNSW": PlainSql(server.new_database(), has_index=True),
    }
    for name, system in systems.items():
        number = 2_000 if name.endswith("HNSW") else 10_000
        taken = milliseconds(system.add_many, texts[:number]) - embedding * number / 10_000
        print(f"  {f'{name}, {number:,}':28} {number / taken * 1e3:9,.0f} entries/s")
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


def ask(server):
    """What it costs that each search asks for the last change: one round trip."""
    with opened(server.new_database(), track_access=False) as memory:
        memory.add_many(notes(0, 2_000), user_id=USERS[0])
        store = memory.repository._store  # noqa: SLF001 - the question alone

        def unasked(*asked):
            with mock.patch.object(store, "latest_position", return_value=asking):
                return memory.search(*asked, user_id=USERS[0])

        for question in QUESTIONS:
            memory.search(question, user_id=USERS[0])
        asking = store.latest_position(memory.agent_id)
        calls = {
            "search": lambda text: memory.search(text, user_id=USERS[0]),
            "search without the question": unasked,
        }
        times, _ = in_turns(calls, [(text,) for text in QUESTIONS], 11)
        times["question"] = [milliseconds(store.latest_position, "a") for _ in range(1_000)]
    for name, found in times.items():
        print(f"  {name:28} {spread(found)}")


def statements(server):
    """Processor time of the server with prepared statements, and without, as behind a pooler."""
    for is_pooled in (False, True):
        url = server.new_database()
        with opened(url) as memory, psycopg.connect(url, autocommit=True) as other:
            if is_pooled:
                memory.repository._store._database.connections._statements_are_lost = True  # noqa: SLF001
            one = memory.add("note", user_id=USERS[0])
            for name, call in {
                "add": lambda at: memory.add(f"note {at}", user_id=USERS[0]),
                "list": lambda _: memory.list(user_id=USERS[0], limit=10),
                "get": lambda _, one=one: memory.get(one.id, user_id=USERS[0]),
            }.items():
                for at in range(50):
                    call(at)
                before = processor_seconds(other)
                for at in range(500):
                    call(at)
                taken = (processor_seconds(other) - before) * 1e3 / 500
                print(f"  {name:5} {'not prepared' if is_pooled else 'prepared':13} {taken:.2f} ms")


def processor_seconds(connection):
    """Return the seconds that the server's other processes for a database have worked."""
    others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"
    found = connection.execute(others, (connection.info.backend_pid,)).fetchall()
    times = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for (pid,) in found]
    return sum(int(each[11]) + int(each[12]) for each in times) / os.sysconf("SC_CLK_TCK")


def ranking(server):
    """One user of ten of 10,000 memories, k = 10: wanted is a ratio of 1.10 to a file."""
    with tempfile.TemporaryDirectory() as folder:
        systems = {
            "mnemic, PostgreSQL": opened(server.new_database(), track_access=False),
            "mnemic, SQLite": opened(Path(folder) / "a.db", track_access=False),
            "pgvector, no index": PlainSql(server.new_database(), has_index=False),
        }
        _fill(systems)
        calls = _ranking_calls(systems)
        times, answers = in_turns(calls, [(text,) for text in QUESTIONS], 5)
        show(times, answers, notes(3000, 1000))
        _compare_hybrid(times, answers)
        close(systems)


def _fill(systems):
    """Store 1,000 memories of each user."""
    for system in systems.values():
        for at, user in enumerate(USERS):
            system.add_many(of_kinds(notes(1000 * at, 1000)), user_id=user)
        if isinstance(system, PlainSql):
            system.gather_statistics()


def _ranking_calls(systems):
    """Return searches of one user's memories: hybrid, by meaning, and by meaning of one kind."""
    calls = {}
    for name, system in systems.items():
        search = partial(system.search, user_id=USERS[3], limit=10)
        if isinstance(system, Memory):
            by_meaning = partial(search, search_type="semantic")
            calls[f"{name}, hybrid"] = search
            calls[name] = by_meaning
            calls[f"{name}, of a kind"] = partial(by_meaning, filters={"metadata.kind": KIND})
        else:
            calls[name] = search
            calls[f"{name}, of a kind"] = partial(search, kind=KIND)
    return calls


def _compare_hybrid(times, answers):
    """Print how a hybrid search in PostgreSQL compares with one in a file."""
    names = [f"mnemic, {place}, hybrid" for place in ("PostgreSQL", "SQLite")]
    server, file = (np.median(times[name]) for name in names)
    same = np.mean([one == other for one, other in zip(*map(answers.get, names), strict=True)])
    print(f"  {'hybrid, PostgreSQL : SQLite':44} {server / file:.2f}   the same answers {same:.3f}")


def cold(server):
    """A semantic search of one agent's 1,000 memories among 100,000: wanted are 3 ms.

    The index is never loaded; every memory of the agent is compared.
    """
    url, plain = server.new_database(), PlainSql(server.new_database(), has_index=False)
    with opened(url, "agent 0") as first:
        first.add_many(of_kinds(notes(0, MEMORIES)))
    _copy_agents(url, 100)
    plain.add_many(of_kinds(notes(0, MEMORIES)), user_id="agent 0")
    plain.connection.execute(
        "INSERT INTO notes (user_id, content, data, embedding) SELECT 'agent ' || n, content, "
        "data, embedding FROM notes, generate_series(1, 99) AS n"
    )
    plain.gather_statistics()
    options = {"embedder": None, "track_access": False}
    memories = {
        "in the database": opened(url, AGENT, search_in="database", **options),
        "in memory": opened(url, AGENT, search_in="memory", **options),
    }
    _time_cold(memories, plain)
    close(memories | {"": plain})


def _time_cold(memories, plain):
    """Print the times of searches by meaning, and of hybrid ones in the database."""
    calls = {}
    for name, memory in memories.items():
        search = partial(_by_vector, memory)
        calls[f"semantic, {name}"] = search
        calls[f"semantic, {name}, of a kind"] = partial(search, filters={"metadata.kind": KIND})
    calls["pgvector, no index"] = search = partial(_by_text, plain)
    calls["pgvector, no index, of a kind"] = partial(search, kind=KIND)
    asked = list(zip(QUESTIONS, drawn(QUESTIONS), strict=True))
    times, answers = in_turns(calls, asked, 3)
    show(times, answers, notes(0, MEMORIES))
    memory = memories["in the database"]
    hybrid = [milliseconds(memory.search, text, vector=vector) for text, vector in asked]
    print(f"  {'hybrid, in the database':44} {spread(hybrid)}")


def _by_vector(memory, _, vector, **options):
    return memory.search(vector=vector, search_type="semantic", limit=10, **options)


def _by_text(system, text, _, **options):
    return system.search(text, user_id=AGENT, **options)


def live_index(server):
    """Ten thousand at once where an HNSW index of 10,000 is live: wanted are 300 a second."""
    texts = notes(0, 20_000)
    with opened(server.new_database()) as memory:
        memory.add_many(texts[:10_000])
        built = milliseconds(memory.index.create)
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
    """1,000 agents of 1,000 memories, capacity for 100, drawn by Zipf's law of exponent 1.

    Wanted are hits of 2 ms and misses of 60 ms at the 95th percentile, a hit rate within 10 points
    of the best possible, and a budget exceeded by one agent at most.
    """
    url = server.new_database()
    with opened(url, "agent 0") as first:
        first.add_many(notes(0, MEMORIES))
        first.search("apples")
        size = first.repository._indexes.active.loading.nbytes  # noqa: SLF001
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


PARTS = (add, add_many, live_index, visibility, ask, statements, ranking, cold, pool)


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
