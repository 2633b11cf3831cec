"""Another key for all that is sealed, and the end of a key."""

import itertools
import os
import random
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from mnemic import MemoryEntry, errors
from mnemic.crypto import Encryption, MasterKey
from mnemic.repository import maintenance
from mnemic.store.futures import succeeded
from mnemic.store.operations import Reseal
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder
from tests.support.entries import uid
from tests.support.keys import KEY, OTHER_KEY, SALT, shows, told
from tests.support.operations import replace_operation
from tests.support.processes import ENVIRONMENT
from tests.support.sealing import column, make_sums_right, opened_field, put_field, run
from tests.support.secret_forms import left_in, shown
from tests.support.threads import run_together
from tests.support.tiers import amount

SECRET = "the zqsecret of the night"  # noqa: S105 - no password
THIRD_KEY = bytes(range(64, 96))
AGENT = "default"
ROUNDS = int(os.environ.get("MNEMIC_TORTURE_ROUNDS", "0"))


def sealing(path, key=KEY, *, encrypt_all=False, previous=(), **options):
    made = Encryption(key, encrypt_all=encrypt_all, previous=previous)
    return opened(path, encryption=made, **options)


def filled(path, count=7):
    """Store sealed memories of two users, a deleted one, and a plain one."""
    with sealing(path) as memory:
        for number in range(1, count + 1):
            user = "ann" if number % 2 else None
            key = {"idempotency_key": f"k{number}", "user_id": user}
            memory.add(f"{SECRET} {number}", sensitive=True, id=uid(number), **key)
        memory.add("plain", id=uid(100))
        memory.delete(uid(2))
        memory.link(uid(4), uid(6))


def key_ids(path):
    return [key_id for (key_id,) in run(path, "SELECT key_id FROM agent_memory_keys")]


def contents(memory):
    return sorted(entry.content for entry in memory.list(all_users=True, limit=1000))


@pytest.mark.requirement("C179")
def test_all_that_is_sealed_opens_with_the_new_key_alone_then(path):
    filled(path)
    with sealing(path) as memory:
        before = contents(memory)
        before_bytes = [opened_field(path, number, AGENT) for number in range(1, 8)]
        assert memory.rotate_key(OTHER_KEY) == 7
        assert contents(memory) == before
        assert memory.verify().ok
    assert key_ids(path) == [MasterKey(OTHER_KEY).key_id]
    for number, field in enumerate(before_bytes, start=1):
        now = opened_field(path, number, AGENT)
        assert now[1:9] == MasterKey(OTHER_KEY).key_id != field[1:9]
    with pytest.raises(errors.WrongKeyError):
        sealing(path)
    with sealing(path, OTHER_KEY) as memory:
        assert contents(memory) == before
        assert memory.search("zqsecret", user_id="ann", search_type="semantic", limit=9)
        again = memory.add(f"{SECRET} 4", sensitive=True, idempotency_key="k4")
        assert again.id == uid(4)
        same = memory.add(f"{SECRET.upper()} 6", sensitive=True, on_duplicate="skip")
        assert same.id == uid(6)
        assert memory.restore(uid(2))
        assert memory.get(uid(2)).content == f"{SECRET} 2"
        assert memory.stats(all_users=True).unreadable_entries == 0
        assert memory.verify().ok
    assert left_in(path.parent, ["zqsecret"]) == {}


def test_a_second_rotation_to_the_same_key_changes_nothing(path):
    filled(path)
    with sealing(path) as memory:
        assert memory.rotate_key(OTHER_KEY) == 7
        assert memory.rotate_key(OTHER_KEY) == 0
        assert memory.rotate_key(KEY) == 7
    with sealing(path) as memory:
        assert memory.get(uid(4)).content == f"{SECRET} 4"


@pytest.mark.requirement("C179")
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_rotation_that_is_stopped_goes_on_with_both_keys(path, monkeypatch, steps):
    filled(path)
    monkeypatch.setattr(maintenance, "RESEALED_AT_ONCE", 3)
    with sealing(path) as memory:
        store, done = memory.repository._store, []

        def stopping(write, wanted):
            if len(done) == steps:
                raise KeyboardInterrupt
            done.append(wanted)
            return write(wanted)

        with monkeypatch.context() as patch:
            replace_operation(patch, store, Reseal, stopping)
            with pytest.raises(KeyboardInterrupt):
                memory.rotate_key(OTHER_KEY)
        assert len(contents(memory)) == 7
        memory.add(f"{SECRET} meanwhile", sensitive=True, id=uid(50))
        assert memory.verify().ok
    for key in (KEY, OTHER_KEY):
        with pytest.raises(errors.WrongKeyError):
            sealing(path, key)
    with sealing(path, OTHER_KEY, previous=[KEY]) as memory:
        assert len(contents(memory)) == 8
        memory.rotate_key(OTHER_KEY)
        assert memory.verify().ok
    with sealing(path, OTHER_KEY) as memory:
        assert len(contents(memory)) == 8
        assert memory.get(uid(50)).content == f"{SECRET} meanwhile"


def test_another_opening_with_both_keys_goes_on_meanwhile(path):
    filled(path)
    with sealing(path) as memory, sealing(path, previous=[OTHER_KEY]) as other:
        assert other.search("zqsecret 4")
        memory.rotate_key(OTHER_KEY)
        assert other.get(uid(4)).content == f"{SECRET} 4"
        other.add(f"{SECRET} of the other", sensitive=True, id=uid(51))
        assert memory.get(uid(51)).content == f"{SECRET} of the other"
        assert opened_field(path, 51, AGENT)[1:9] == MasterKey(OTHER_KEY).key_id
        assert {hit.id for hit in other.search("of the other")} >= {uid(51)}
    with sealing(path, OTHER_KEY) as memory:
        assert memory.get(uid(51)).content == f"{SECRET} of the other"


def test_another_opening_with_the_old_key_alone_is_told_so_and_seals_nothing_under_it(path):
    filled(path)
    with sealing(path) as memory, sealing(path) as other:
        assert other.get(uid(4)).content == f"{SECRET} 4"
        memory.rotate_key(OTHER_KEY)
        with pytest.raises((errors.WrongKeyError, errors.KeyUnavailableError)):
            other.add(f"{SECRET} late", sensitive=True)
        with pytest.raises((errors.WrongKeyError, errors.KeyUnavailableError)):
            other.get(uid(4))
        assert memory.verify().ok
        assert len(contents(memory)) == 7


def test_writers_in_threads_lose_nothing_to_a_rotation(path, monkeypatch):
    filled(path)
    monkeypatch.setattr(maintenance, "RESEALED_AT_ONCE", 2)
    failures, stored = [], []
    with sealing(path) as memory, sealing(path, previous=[OTHER_KEY, THIRD_KEY]) as other:

        def write(door, first):
            for number in range(first, first + 40):
                try:
                    door.add(f"{SECRET} {number}", sensitive=True, id=uid(number))
                    stored.append(number)
                except errors.MnemicError as error:
                    failures.append(error)

        threads = [
            threading.Thread(target=write, args=pair)
            for pair in ((memory, 1000), (other, 2000), (other, 3000))
        ]
        for thread in threads:
            thread.start()
        memory.rotate_key(OTHER_KEY)
        memory.rotate_key(THIRD_KEY)
        for thread in threads:
            thread.join()
        assert failures == []
        assert memory.verify().ok
        memory.rotate_key(THIRD_KEY)
    with sealing(path, THIRD_KEY) as memory:
        for number in stored:
            assert memory.get(uid(number)).content == f"{SECRET} {number}"
        assert memory.stats(all_users=True).unreadable_entries == 0


KILLED = """
import sys
from mnemic import Encryption, Memory
from mnemic.repository import maintenance
from tests.support.keys import KEY, OTHER_KEY

maintenance.RESEALED_AT_ONCE = 3
keys = [KEY, OTHER_KEY]
with Memory(sys.argv[1], embedder=None, encryption=Encryption(KEY)) as memory:
    for turn in range(1, 10_000):
        memory.add(f"the zqsecret of turn {turn}", user_id="ann", sensitive=True)
        print(turn, flush=True)
        memory.rotate_key(keys[turn % 2])
"""


@pytest.mark.parametrize("seed", range(amount(8) + ROUNDS))
def test_a_rotation_that_is_killed_at_any_moment_loses_nothing_and_goes_on(path, seed):
    filled(path, 40)
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as child:
        acknowledged = {int(child.stdout.readline())}
        time.sleep(random.Random(seed).random() * 0.4)  # noqa: S311 - a fixed choice
        child.kill()
        acknowledged |= {int(line) for line in child.stdout}
    with sealing(path, KEY, previous=[OTHER_KEY]) as memory:
        stored = [text for text in contents(memory) if text.startswith("the zqsecret of turn ")]
        assert {int(text.rpartition(" ")[2]) for text in stored} >= acknowledged
        assert len(contents(memory)) == 40 + len(stored)
        memory.rotate_key(THIRD_KEY)
        assert memory.verify().ok
    assert key_ids(path) == [MasterKey(THIRD_KEY).key_id]
    with sealing(path, THIRD_KEY) as memory:
        assert len(contents(memory)) == 40 + len(stored)
    assert not left_in(path.parent, ["zqsecret"])


WRITING = """
import itertools, sys
from mnemic import Encryption, Memory
from tests.support.keys import KEY, OTHER_KEY

previous = [OTHER_KEY] if sys.argv[2] == "both" else []
encryption = Encryption(KEY, previous=previous)
with Memory(sys.argv[1], embedder=None, encryption=encryption) as memory:
    for number in itertools.count(1):
        memory.add(f"the zqsecret of number {number}", user_id="ann", sensitive=True)
        assert memory.search("zqsecret", user_id="ann", limit=3)
        print(number, flush=True)
"""


def writing(path, keys):
    """Start a process that stores sealed memories until it is killed, and prints their numbers."""
    command = [sys.executable, "-c", WRITING, str(path), keys]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, env=ENVIRONMENT)


def test_a_process_with_both_keys_goes_on_during_rotations_and_loses_nothing(path):
    filled(path)
    with writing(path, "both") as child, sealing(path) as memory:
        acknowledged = [int(child.stdout.readline())]
        for key in (OTHER_KEY, KEY, OTHER_KEY):
            memory.rotate_key(key)
            acknowledged += [int(child.stdout.readline()) for _ in range(5)]
        child.kill()
        acknowledged += map(int, child.stdout)
        assert child.stderr.read() == b""
    with sealing(path, KEY, previous=[OTHER_KEY]) as memory:
        memory.rotate_key(KEY)
    with sealing(path) as memory:
        stored = [text for text in contents(memory) if text.startswith("the zqsecret of number ")]
        assert {int(text.rpartition(" ")[2]) for text in stored} >= set(acknowledged)
        assert memory.verify().ok


def test_a_process_with_the_former_key_alone_is_told_so_and_what_it_stored_is_kept(path):
    filled(path)
    with writing(path, "former") as child:
        acknowledged = [int(child.stdout.readline())]
        with sealing(path) as memory:
            memory.rotate_key(OTHER_KEY)
        acknowledged += map(int, child.stdout)
        assert b"WrongKeyError" in child.stderr.read()
    with sealing(path, OTHER_KEY) as memory:
        stored = [text for text in contents(memory) if text.startswith("the zqsecret of number ")]
        unread = {max(acknowledged) + 1}  # stored, and then the search was refused
        numbers = {int(text.rpartition(" ")[2]) for text in stored}
        assert numbers - unread == set(acknowledged)
        assert memory.verify().ok


def test_a_rotation_ends_though_a_memory_never_counts_as_sealed_anew(path, monkeypatch):
    filled(path)
    with sealing(path) as memory:
        store = memory.repository._store
        answers = itertools.cycle([succeeded((1, 1)), succeeded((0, 0))])
        replace_operation(monkeypatch, store, Reseal, lambda *_: next(answers))
        with pytest.raises(errors.SealBrokenError):
            memory.rotate_key(OTHER_KEY)
        assert len(contents(memory)) == 7
        assert len(key_ids(path)) == 2


@pytest.mark.requirement("C105")
def test_a_broken_memory_keeps_the_former_key_and_is_named_by_a_verification(path):
    filled(path)
    field = bytearray(opened_field(path, 4, AGENT))
    field[50] ^= 1
    put_field(path, bytes(field), 4, AGENT)
    make_sums_right(path)
    with sealing(path) as memory:
        with pytest.raises(errors.SealBrokenError) as raised:
            memory.rotate_key(OTHER_KEY)
        assert "zqsecret" not in told(raised.value)
        assert len(contents(memory)) == 6
        assert len(key_ids(path)) == 2
        with pytest.raises(errors.SealBrokenError):
            memory.verify()
        memory.delete(uid(4), permanent=True)
        memory.rotate_key(OTHER_KEY)
    assert key_ids(path) == [MasterKey(OTHER_KEY).key_id]
    with sealing(path, OTHER_KEY) as memory:
        assert len(contents(memory)) == 6
        assert memory.verify().ok


def test_a_rotation_needs_a_key_and_a_file_to_write(path):
    filled(path)
    with opened(path) as memory, pytest.raises(errors.InvalidArgumentError):
        memory.rotate_key(OTHER_KEY)
    with sealing(path, read_only=True) as memory, pytest.raises(errors.ReadOnlyError):
        memory.rotate_key(OTHER_KEY)
    with sealing(path) as memory:
        for wrong in (b"short", "text", None, 7):
            with pytest.raises(errors.InvalidArgumentError) as raised:
                memory.rotate_key(wrong)
            assert not shows(told(raised.value))
        assert len(contents(memory)) == 7


@pytest.mark.parametrize("others", [True, False])
def test_of_a_forgotten_agent_nothing_is_left_and_no_key_either(path, others):
    filled(path)
    if others:
        with sealing(path, OTHER_KEY, agent_id="b") as memory:
            memory.add(SECRET, sensitive=True, id=uid(1))
    ((salt,),) = run(path, f"SELECT salt FROM agent_memory_keys WHERE agent_id = '{AGENT}'")  # noqa: S608
    field = opened_field(path, 4, AGENT)
    with sealing(path) as memory:
        assert memory.forget_agent() == 8
        assert memory.count(all_users=True) == 0
        assert memory.search("night") is not None
        for data in (file.read_bytes() for file in path.parent.rglob("*") if file.is_file()):
            assert salt not in data
            assert field not in data
            assert shown(data, ["zqsecret"]) == []
        added = memory.add(SECRET, sensitive=True, id=uid(4))
        assert added.is_encrypted
        assert memory.get(uid(4)).content == SECRET
        assert memory.verify().ok
    ((new,),) = run(path, f"SELECT salt FROM agent_memory_keys WHERE agent_id = '{AGENT}'")  # noqa: S608
    assert new not in (salt, SALT)
    if others:
        with sealing(path, OTHER_KEY, agent_id="b") as memory:
            assert memory.get(uid(1)).content == SECRET


def test_another_opening_of_a_forgotten_agent_finds_nothing_and_seals_under_a_new_key(path):
    filled(path)
    with sealing(path) as memory, sealing(path) as other:
        assert other.search("zqsecret 4")
        memory.forget_agent()
        assert list(other.search("zqsecret")) == []
        assert other.count(all_users=True) == 0
        other.add(SECRET, sensitive=True, id=uid(60))
        assert memory.get(uid(60)).content == SECRET
        assert len(key_ids(path)) == 1
        assert column(path, "is_encrypted", 60, AGENT) == 1
    with sealing(path) as memory:
        assert memory.get(uid(60)).content == SECRET
        assert memory.verify().ok


@pytest.mark.parametrize("way", ["add", "add_many", "replace", "update", "reembed"])
def test_another_opening_seals_under_the_new_key_without_having_read_it(path, way):
    filled(path)
    with sealing(path) as memory, sealing(path, previous=[OTHER_KEY]) as other:
        other.add(f"{SECRET} 50", sensitive=True, id=uid(50))
        memory.rotate_key(OTHER_KEY)
        ways = {
            "add": lambda: other.add("the zqnight", sensitive=True, id=uid(60)),
            "add_many": lambda: other.add_many(
                [{"content": "the zqnight", "sensitive": True}, {"content": "zqmore"}]
            ),
            "replace": lambda: other.add_many(
                [MemoryEntry("the zqnight", sensitive=True, id=uid(100))], on_conflict="replace"
            )[0],
            "update": lambda: other.update(uid(100), metadata={"sensitive": True}),
            "reembed": lambda: other.reembed(WordEmbedder(model="others")),
        }
        ways[way]()
        found = contents(other)
        assert len(found) == len(contents(memory))
    assert key_ids(path) == [MasterKey(OTHER_KEY).key_id]
    with opened(path, encryption=Encryption(OTHER_KEY), snapshots=False, embedder=None) as memory:
        assert contents(memory) == found
        assert memory.stats(all_users=True).unreadable_entries == 0
        assert memory.verify().ok


def test_another_opening_without_the_new_key_stores_nothing(path):
    filled(path)
    with sealing(path) as memory, sealing(path) as other:
        other.add(f"{SECRET} 50", sensitive=True, id=uid(50))
        memory.rotate_key(OTHER_KEY)
        before = contents(memory)
        for refused in (
            lambda: other.add("the zqnight", sensitive=True, id=uid(60)),
            lambda: other.update(uid(100), metadata={"sensitive": True}),
        ):
            with pytest.raises(errors.WrongKeyError):
                refused()
        assert contents(memory) == before


def test_keys_that_openings_make_at_once_are_one(path):
    for agent in ("a", "b", "c"):
        doors = [sealing(path, agent_id=agent) for _ in range(4)]
        barrier, failures = threading.Barrier(4), []

        def write(door, number, barrier=barrier, failures=failures):
            barrier.wait()
            try:
                door.add(f"{SECRET} {number}", sensitive=True, id=uid(number))
            except errors.MnemicError as error:
                failures.append(error)

        run_together(*(partial(write, d, n) for n, d in enumerate(doors, 1)))
        assert failures == []
        for door in doors:
            assert len(contents(door)) == 4
            door.close()
    assert len(key_ids(path)) == 3
