"""Holds a damaged file against what was in it: right answers, a typed error, or what else."""

from collections import Counter

from mnemic.errors import MnemicError
from mnemic.memory import Memory
from mnemic.model import MemoryFilter
from mnemic.threads.sync_bridge import run_sync
from tests.support.embedders import WordEmbedder

USER = "alice"
ADVICE = (
    "restore a backup",
    "choose another path",
    "upgrade mnemic",
    "open the file with",
)
"""Every error about a damaged file says what to do; these are the things there are to do."""


def make(path, number=40):
    """Write a file of memories, short and long ones; return it as bytes, and what it answers."""
    with Memory(path, embedder=WordEmbedder()) as memory:
        entries = memory.add_many(
            {
                "content": f"fact{at} " * (1 if at % 5 else 900) + "höhe",
                "user_id": USER,
                "tags": ["t", f"t{at}"],
                "metadata": {"at": at},
                "role": "user",
            }
            for at in range(number)
        )
        memory.delete(entries[3].id, user_id=USER)
        memory.delete(entries[4].id, user_id=USER, permanent=True)
        memory.update(entries[5].id, content="changed", user_id=USER)
        ids = [entry.id for entry in entries if entry.id != entries[4].id]
        expected = answers(memory, ids)
    return path.read_bytes(), ids, expected


def answers(memory, ids):
    """Ask everything there is to ask."""
    repository = memory._repository
    scope = memory._scope.narrowed(USER, None, None)
    found = run_sync(repository.reader.get(scope, ids, include_deleted=True))
    hits = memory.search("fact1 höhe", user_id=USER, limit=100)
    return {
        "entries": found,
        "count": memory.count(user_id=USER),
        "hits": [(hit.entry, hit.score) for hit in hits],
        "filtered": run_sync(repository.lister.matching(scope, MemoryFilter())),
        "stats": memory.stats().entries_by_type,
    }


def outcome(path, ids, expected):
    """Return "right", "refused", or what was wrong without an error."""
    try:
        with Memory(path, embedder=WordEmbedder()) as memory:
            found = answers(memory, ids)
            memory.add("written afterwards", user_id=USER)
    except MnemicError as error:
        is_clear = any(advice in str(error) for advice in ADVICE)
        return "refused" if is_clear else repr(error)
    wrong = [name for name, value in expected.items() if found[name] != value]
    return "right" if not wrong else "wrong " + wrong[0]


def with_log(path, number=30):
    """Add memories one by one; return the bytes of the file and of its log before they are joined.

    Returns:
        Both, and the ids in the order in which they were acknowledged.
    """
    with Memory(path, embedder=WordEmbedder()) as memory:
        ids = [memory.add(f"fact{at} " * 90, user_id=USER).id for at in range(number)]
        log = path.with_name(f"{path.name}-wal")
        return path.read_bytes(), log.read_bytes(), ids


def tally(path, damaged, ids, expected):
    """Count the outcomes of several damaged files."""
    outcomes = Counter()
    for content in damaged:
        for leftover in path.parent.glob(f"{path.name}*"):
            leftover.unlink()
        path.write_bytes(content)
        outcomes[outcome(path, ids, expected)] += 1
    return outcomes
