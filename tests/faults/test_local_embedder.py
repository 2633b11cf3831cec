"""The local embedder beside signals, forks, threads that cannot start, and too little memory."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.processes import ENVIRONMENT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits are Linux's")

BEGIN = """
import hashlib, json, os, resource, signal, sys, threading, time
from mnemic.embed import MiniLmEmbedder

LONG = "a word and another " * 100
MANY = [f"She opened bakery {n} near the harbour" for n in range(300)]

def digest(vectors):
    return hashlib.sha256(vectors.tobytes()).hexdigest()
"""


def run(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program, *map(str, arguments)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_an_interrupt_ends_a_long_call_within_moments():
    program = """
embedder = MiniLmEmbedder()
few = digest(embedder.embed(MANY))
late = {}
for name, texts in {
    "short": MANY * 70, "long": [LONG] * 5000, "marks": ["e" + "\\u0301" * 100_000] * 2000,
    "one word": ["x" * 1_000_000] * 2000,
}.items():
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    begun = time.monotonic()
    try:
        embedder.embed(texts)
    except KeyboardInterrupt:
        late[name] = time.monotonic() - begun - 0.3
    assert digest(embedder.embed(MANY)) == few
print(json.dumps(late))
"""
    late = run(program)
    assert sorted(late) == ["long", "marks", "one word", "short"]
    assert max(late.values()) < 5  # .1 to .5 s on a quiet machine


def test_a_signal_handler_embeds_while_its_thread_does():
    program = """
embedder = MiniLmEmbedder()
few, one = digest(embedder.embed(MANY)), digest(embedder.embed(["in a handler"]))
answers = []

def handler(*_):
    answers.append(digest(embedder.embed(["in a handler"])) == one)
    signal.setitimer(signal.ITIMER_REAL, 0.01)

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.01)
ends, right = time.monotonic() + 60, True
while len(answers) < 20 and time.monotonic() < ends:
    right &= digest(embedder.embed(MANY * 10)[:300]) == few
signal.signal(signal.SIGALRM, signal.SIG_IGN)
print(json.dumps([right, all(answers), len(answers) >= 20]))
"""
    assert run(program) == [True, True, True]


def test_a_child_of_fork_embeds_even_where_other_threads_were_embedding():
    program = """
embedder = MiniLmEmbedder(threads=3)
few = digest(embedder.embed(MANY))
over = threading.Event()

def embed():
    while not over.is_set():
        embedder.embed(MANY)

threads = [threading.Thread(target=embed) for _ in range(2)]
for thread in threads:
    thread.start()
ended = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if digest(embedder.embed(MANY)) == few else 3)
    ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
over.set()
for thread in threads:
    thread.join()
print(json.dumps(ended))
"""
    assert run(program) == [0] * 5


@pytest.mark.parametrize("when", ["unloaded", "loaded"])
def test_a_program_ends_while_its_daemon_threads_embed(when):
    program = """
embedder = MiniLmEmbedder(threads=2)
if sys.argv[1] == "loaded":
    embedder.embed(["loaded"])

def embed():
    while True:
        embedder.embed([LONG] * 50)

for _ in range(3):
    threading.Thread(target=embed, daemon=True).start()
time.sleep(0.02 if sys.argv[1] == "unloaded" else 0.3)
print("[]")
"""
    assert run(program, when) == []


def test_where_no_thread_can_start_one_embeds_all():
    program = """
embedder = MiniLmEmbedder(threads=10**6)
few = digest(embedder.embed(MANY))
if os.getuid() == 0:  # whom no limit of processes holds
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
    threading.Thread(target=int).start()
    starts = True
except RuntimeError:
    starts = False
print(json.dumps([starts, digest(embedder.embed(MANY)) == few]))
"""
    assert run(program) == [False, True]


def test_too_little_memory_is_an_error_and_the_next_call_answers():
    program = """
def outcome(megabytes, threads, texts):
    child = os.fork()  # each begins without buffers
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(60)
    embedder._threads = threads
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + int(megabytes * (1 << 20))
    resource.setrlimit(resource.RLIMIT_AS, (limit, -1))
    try:
        code = 0 if digest(embedder.embed(texts)[:99]) == few else 9
    except MemoryError:
        code = 1
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    if digest(embedder.embed(MANY[:99])) != few:
        code = 8
    os._exit(code)

embedder = MiniLmEmbedder(threads=1)
few = digest(embedder.embed(MANY[:99]))
told = {}
for threads in (1, 10**6):
    for name, texts in {"few": MANY[:99], "long": MANY + [LONG] * 20}.items():
        codes = [outcome(size, threads, texts) for size in json.loads(sys.argv[1])]
        told[f"{threads} {name}"] = codes
print(json.dumps(told))
"""
    told = run(program, json.dumps([0, 1, 10, 4000]))
    for name, codes in told.items():
        assert set(codes) == {0, 1}, (name, codes)
        assert (codes[0], codes[-1]) == (1, 0), (name, codes)


def test_too_little_memory_to_load_the_model_is_an_error_and_the_next_call_loads_it():
    program = """
from mnemic.errors import EmbeddingError

def outcome(megabytes):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(60)
    embedder = MiniLmEmbedder(threads=1)
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + int(megabytes * (1 << 20))
    resource.setrlimit(resource.RLIMIT_AS, (limit, -1))
    try:
        code = embedder.embed(["text"]).shape != (1, 384)
    except (MemoryError, EmbeddingError):
        code = 1
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    embedder.embed(["text"])
    os._exit(code)

print(json.dumps([outcome(half / 2) for half in [*range(30), 400]]))
"""
    told = run(program)
    assert (told[0], told[-1]) == (1, 0)
    assert set(told) == {0, 1}, told


@pytest.mark.parametrize("path", ["pipe", "folder", "missing", "na\0me", "\udcff.bin", "empty"])
def test_what_is_no_file_of_weights_is_refused_and_never_waited_for(tmp_path, path):
    program = """
from mnemic._core import SentenceEncoder
from mnemic.errors import EmbeddingError
tokenizer, told = MiniLmEmbedder()._load().tokenizer, []
path = os.path.join(sys.argv[1], json.loads(sys.argv[2]))
for verify in (False, True):
    try:
        SentenceEncoder(path, tokenizer, verify=verify)
    except EmbeddingError as error:
        told.append(str(error))
print(json.dumps(told))
"""
    if path == "pipe":
        os.mkfifo(tmp_path / path)
    elif path == "folder":
        (tmp_path / path).mkdir()
    elif path in {"empty", "\udcff.bin"}:
        (tmp_path / path).touch()
    told = run(program, tmp_path, json.dumps(path))
    assert [error.split(" ", 2)[:2] for error in told] == [["the", "weights"]] * 2


def test_a_file_that_is_replaced_stays_as_it_was_for_who_has_it_open(tmp_path):
    program = """
import shutil
import mnemic_minilm
path, other = (os.path.join(sys.argv[1], name) for name in ("weights.bin", "other"))
shutil.copy(mnemic_minilm.weights_path(), path)
mnemic_minilm.weights_path = lambda: path
embedder = MiniLmEmbedder()
few = digest(embedder.embed(MANY))
open(other, "wb").close()
os.replace(other, path)
told = [digest(embedder.embed(MANY)) == few]
os.unlink(path)
print(json.dumps([*told, digest(embedder.embed(MANY)) == few]))
"""
    assert run(program, tmp_path) == [True, True]
