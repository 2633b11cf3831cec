"""Nonces: none comes twice, from any thread, process or copy of a process."""

import itertools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from mnemic.crypto import sealer as sealing
from mnemic.crypto.sealer import new_nonces
from tests.support.keys import ENTRY, sealer
from tests.support.processes import ENVIRONMENT

MILLION = 1_000_000


def without_randomness(monkeypatch):
    monkeypatch.setattr(sealing.os, "urandom", bytes)


def restarted(monkeypatch):
    monkeypatch.setattr(sealing, "_counter", itertools.count())


def test_a_million_nonces_differ_whatever_the_random_bytes_are(monkeypatch):
    without_randomness(monkeypatch)
    made = new_nonces(MILLION)
    assert {len(nonce) for nonce in made} == {12}
    assert len(set(made)) == MILLION


def test_nonces_of_many_calls_differ_as_those_of_one_do(monkeypatch):
    without_randomness(monkeypatch)
    made = [nonce for count in range(300) for nonce in new_nonces(count)]
    assert len(made) == 300 * 299 // 2 == len(set(made))


def test_the_counter_goes_round_after_its_last_number(monkeypatch):
    without_randomness(monkeypatch)
    monkeypatch.setattr(sealing, "_counter", itertools.count(2**32 - 2))
    assert [nonce[8:].hex() for nonce in new_nonces(4)] == [
        "fffffffe",
        "ffffffff",
        "00000000",
        "00000001",
    ]


def test_a_copy_of_a_process_that_goes_on_from_one_counter_makes_other_nonces(monkeypatch):
    restarted(monkeypatch)
    first = new_nonces(10_000)
    restarted(monkeypatch)
    second = new_nonces(10_000)
    assert [nonce[8:] for nonce in first] == [nonce[8:] for nonce in second]
    assert not {*first} & {*second}


def test_the_random_bytes_take_every_value():
    made = new_nonces(10_000)
    assert all(len({nonce[at] for nonce in made}) == 256 for at in range(8))


def test_threads_never_share_a_nonce(monkeypatch):
    without_randomness(monkeypatch)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            made = [nonce for part in pool.map(new_nonces, [50] * 2_000) for nonce in part]
    finally:
        sys.setswitchinterval(interval)
    assert len(made) == 100_000 == len(set(made))


def test_two_sealers_of_one_key_share_no_nonce(monkeypatch):
    without_randomness(monkeypatch)
    one, other = sealer(), sealer()
    sealed = [each.seal(b"", ENTRY, "entry") for _ in range(1_000) for each in (one, other)]
    assert len({text[9:21] for text in sealed}) == 2_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_makes_other_nonces_than_its_parent():
    program = (
        "import os\n"
        "from mnemic.crypto.sealer import new_nonces\n"
        "read, write = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.write(write, b''.join(new_nonces(300)))\n"
        "    os._exit(0)\n"
        "own = new_nonces(300)\n"
        "child = os.read(read, 12 * 300)\n"
        "childs = [child[at:at + 12] for at in range(0, len(child), 12)]\n"
        "assert len({*own, *childs}) == 600 == len(own) + len(childs)\n"
    )
    subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, check=True, timeout=60)
