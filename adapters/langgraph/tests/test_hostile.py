"""Walls between namespaces, deletion that stays, crashes, and many processes on one file."""

import random
import signal
import subprocess
import sys
import textwrap

from conftest import INDEX
from langgraph.store.base import PutOp
from langgraph.store.mnemic import MnemicStore

WORDS = ["harbour", "ferry", "invoice", "peanut", "guitar", "secret", "password"]


def run(code, *arguments, **options):
    """Start a Python process that has `store`, opened on its first argument, and `sys`."""
    begin = "import sys\nfrom langgraph.store.mnemic import MnemicStore\n"
    begin += "store = MnemicStore(sys.argv[1])\n"
    command = [sys.executable, "-c", begin + textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def answers(store, namespace):
    """Return all that a program sees of a namespace."""
    found = [
        store.search(namespace, query=word, filter=wanted, limit=50)
        for word in (*WORDS, None)
        for wanted in (None, {"n": {"$gt": 3}})
    ]
    listed = store.list_namespaces(prefix=namespace, limit=1000)
    got = [store.get(namespace, str(n)) for n in range(20)]
    return (
        [[(i.namespace, i.key, i.value, i.score, i.created_at) for i in each] for each in found],
        listed,
        [item and (item.value, item.created_at, item.updated_at) for item in got],
    )


def test_what_one_namespace_does_changes_no_answer_of_another(store):
    chance = random.Random(0)  # noqa: S311 - repeatable
    here = ("users", "ann")
    others = [("users", "ann2"), ("users", "an"), ("users",), ("users", "Ann"), ("users", "bob")]
    for n in range(12):
        store.put(here, str(n), {"text": f"{chance.choice(WORDS)} {n}", "n": n})
    before = answers(store, here)
    for _ in range(150):
        namespace, key = chance.choice(others), str(chance.randrange(20))
        match chance.randrange(4):
            case 0:
                store.delete(namespace, key)
            case 1:
                store.put(namespace, key, {"text": chance.choice(WORDS), "n": 9}, index=False)
            case 2:
                store.search(namespace, query=chance.choice(WORDS))
            case 3:
                value = {"text": " ".join(chance.choices(WORDS, k=4)), "n": chance.randrange(9)}
                store.put(namespace, key, value, ttl=chance.choice([None, 5]))
    store.sweep_ttl()
    assert answers(store, here) == before


def test_stores_of_two_agents_in_one_file_share_nothing(tmp_path):
    path = str(tmp_path / "a.db")
    opened = MnemicStore.from_conn_string
    with opened(path) as one, opened(path, agent_id="other") as other:
        one.put(("a",), "k", {"n": 1})
        assert other.get(("a",), "k") is None
        assert other.search(()) == other.list_namespaces() == []
        other.put(("a",), "k", {"n": 2})
        other.delete(("a",), "k")
        assert one.get(("a",), "k").value == {"n": 1}


def test_what_is_deleted_stays_deleted_and_is_in_no_file(tmp_path):
    path = tmp_path / "a.db"
    with MnemicStore.from_conn_string(str(path), index=INDEX) as store:
        texts = {n: f"confidential sentence number {n} zyx" for n in range(30)}
        store.batch([PutOp(("a",), str(n), {"text": text}) for n, text in texts.items()])
        store.delete(("a",), "7")
        store.put(("a",), "8", {"text": "replaced"})
        store.batch([PutOp(("a",), "9", None), PutOp(("a",), "10", {"text": "new"})])
        assert store.memory.erase_pending()
    for _ in range(2):
        with MnemicStore.from_conn_string(str(path), index=INDEX) as store:
            found = {item.key for item in store.search((), query=texts[7], limit=100)}
            assert found == {str(n) for n in range(30)} - {"7", "9"}
            assert store.get(("a",), "7") is store.get(("a",), "9") is None
            assert store.memory.verify().ok
    kept = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    assert texts[6].encode() in kept
    assert not [n for n in (7, 8, 9, 10) if texts[n].encode() in kept]


def test_what_was_acknowledged_outlives_a_kill_of_its_writers(tmp_path):
    path = tmp_path / "a.db"
    MnemicStore(str(path)).close()
    code = """
    from langgraph.store.base import PutOp
    me, n = sys.argv[2], 0
    while True:
        store.batch([PutOp((me,), f"{n}.{part}", {"n": n}) for part in range(5)]
            + [PutOp((me,), f"{n - 3}.{part}", None) for part in range(5)])
        print(n, flush=True)
        n += 1
    """
    writers = [run(code, path, name) for name in "abcd"]
    said = {}
    for name, writer in zip("abcd", writers, strict=True):
        for _ in range(5):
            said[name] = int(writer.stdout.readline())
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
    for name, writer in zip("abcd", writers, strict=True):
        rest = writer.communicate()[0].split("\n")[:-1]
        said[name] = max([said[name], *map(int, rest)])
    with MnemicStore.from_conn_string(str(path)) as store:
        assert store.memory.verify().ok
        for name in "abcd":
            found = [item.value["n"] for item in store.search((name,), limit=1000)]
            last = max(found)
            assert said[name] <= last <= said[name] + 1
            whole = [n for n in range(max(0, last - 2), last + 1) for _ in range(5)]
            assert sorted(found) == whole, "a batch is there in part"


def test_eight_processes_on_one_file_see_each_others_writes(tmp_path):
    path = tmp_path / "a.db"
    code = """
    from langgraph.store.base import PutOp
    from mnemic.errors import StoreBusyError
    own = ("own", sys.argv[2])

    def written(*ops):
        while True:
            try:
                return store.batch(ops)
            except StoreBusyError:  # a slow disk, and seven others
                pass

    for n in range(10):
        written(PutOp(own, str(n), {"n": n}), PutOp(("shared",), "last", {"n": n}))
        assert store.get(own, str(n)).value == {"n": n}
        assert store.get(("shared",), "last") is not None
        if n % 5 == 4:
            written(PutOp(own, str(n - 4), None))
    assert len(store.search(own, limit=100)) == 8
    store.close()
    print("done")
    """
    processes = [run(code, path, n) for n in range(8)]
    said = [process.communicate(timeout=240)[0] for process in processes]
    assert said == ["done\n"] * 8
    with MnemicStore.from_conn_string(str(path)) as store:
        assert len(store.search(("own",), limit=1000)) == 64
        assert store.get(("shared",), "last").value["n"] == 9
        assert len(store.list_namespaces()) == 9
        assert store.memory.verify().ok


def test_a_store_sees_what_another_process_writes(tmp_path, store):
    path = tmp_path / "store.db"
    store.put(("a",), "mine", {"text": "abc"})
    writer = run('store.put(("a",), "theirs", {"text": "abc"}); store.delete(("a",), "mine")', path)
    assert writer.wait(60) == 0
    assert [item.key for item in store.search(("a",))] == ["theirs"]
