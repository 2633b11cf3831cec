"""Records the package's locks: where each is made, and what is taken or done while it is held.

`record` has to be called before modules that make locks are imported.
"""

import ast
import functools
import sys
import threading
import traceback
from contextlib import contextmanager
from pathlib import Path

from mnemic.threads import locks

PACKAGE = Path(locks.__file__).parents[1]
MAKERS = {"Condition", "Event", "InnerLock", "Lock", "ReentrantLock", "SharedLock"}
"""What the package makes a lock by."""

MADE_OF_ITSELF = {locks.__file__}

OF_A_THREAD = "_OfThread.settling"
"""Held by its own thread alone: no other one waits for it."""


def named_sites():
    """Return the names of the package's locks, by the files and lines that make them."""
    return {
        (str(path), line): name
        for path in sorted(PACKAGE.rglob("*.py"))
        if str(path) not in MADE_OF_ITSELF
        for name, line in sites_in(ast.parse(path.read_text()), path.stem)
    }


def sites_in(tree, owner, name=None):
    """Return the locks that a module makes, each as its class or function and its own name."""
    if isinstance(tree, ast.ClassDef) or (isinstance(tree, ast.FunctionDef) and owner.islower()):
        owner = tree.name
    if isinstance(tree, ast.Assign | ast.AnnAssign):
        name = last_name(tree.targets[-1] if isinstance(tree, ast.Assign) else tree.target)
    is_of_asyncio = last_name(getattr(getattr(tree, "func", None), "value", None)) == "asyncio"
    if isinstance(tree, ast.Call) and last_name(tree.func) in MAKERS and not is_of_asyncio:
        return [(f"{owner}.{name}", tree.lineno)]
    inside = [sites_in(child, owner, name) for child in ast.iter_child_nodes(tree)]
    return [site for sites in inside for site in sites]


def last_name(node):
    """Return the name that an expression ends with; None of others."""
    if isinstance(node, ast.Tuple):
        node = node.elts[-1]
    return getattr(node, "attr", getattr(node, "id", None))


class Recorder:
    """What was seen of the locks of this process.

    Attributes:
        pairs: Where a lock was first waited for while another one was held, by both names.
        deeds: Where something was first done while a lock was held, by the lock and the deed.
        taken: Names of the locks that were taken.
    """

    def __init__(self):
        self.pairs, self.deeds, self.taken = {}, {}, set()
        self._sites = named_sites()
        self._threads = threading.local()

    @property
    def _held(self):
        return vars(self._threads).setdefault("held", [])

    def name(self):
        """Return the name of the lock that is being made."""
        frame = sys._getframe(1)
        while frame.f_code.co_filename in SKIPPED:
            if frame.f_code.co_qualname == "_OfThread.__init__":
                return OF_A_THREAD
            frame = frame.f_back
        place = frame.f_code.co_filename, frame.f_lineno
        return self._sites.get(place, f"{Path(place[0]).name}:{place[1]}")

    def waits(self, lock, name):
        """Note that a lock is about to be waited for."""
        for other, outer in self._held:
            if other is not lock and (outer, name) not in self.pairs:
                self.pairs[outer, name] = stack()

    def has(self, lock, name):
        """Note that a lock was taken."""
        self.taken.add(name)
        if name != OF_A_THREAD:
            self._held.append((lock, name))

    def leaves(self, lock):
        """Note that a lock was released."""
        held = self._held
        places = [at for at, (other, _) in enumerate(held) if other is lock]
        if places:
            del held[places[-1]]

    def does(self, deed):
        """Note that this thread does something."""
        for _, outer in self._held:
            if (outer, deed) not in self.deeds:
                self.deeds[outer, deed] = stack()

    @contextmanager
    def holding(self, key, name):
        """Note what is held for a block as a lock is."""
        self.waits(key, name)
        self.has(key, name)
        try:
            yield
        finally:
            self.leaves(key)


SKIPPED = {__file__, locks.__file__, threading.__file__}


def stack():
    """Return the calls that lead here, the last one at the end, without those of this module."""
    calls = [call for call in traceback.extract_stack(limit=25) if call.filename != __file__]
    return [f"{call.filename}:{call.lineno} {call.name}" for call in calls]


def recording(recorder, base):  # noqa: C901 - one class
    """Return a class of locks that tell a recorder."""

    class Recorded(base):
        def __init__(self):
            super().__init__()
            self.name = recorder.name()

        @property
        def __enter__(self):
            if self.name != OF_A_THREAD:
                recorder.waits(self, self.name)
            return functools.partial(self._entered, super().__enter__)

        def _entered(self, enter):
            enter()
            recorder.has(self, self.name)

        def __exit__(self, *error):
            recorder.leaves(self)
            return super().__exit__(*error)

        def acquire(self, blocking=True, timeout=-1):  # noqa: FBT002 - as those of threading
            if blocking:
                recorder.waits(self, self.name)
            is_taken = super().acquire(blocking, timeout)
            if is_taken:
                recorder.has(self, self.name)
            return is_taken

        def release(self):
            recorder.leaves(self)
            super().release()

        def _release_save(self):
            recorder.leaves(self)
            return super()._release_save()

        def _acquire_restore(self, state):
            super()._acquire_restore(state)
            recorder.has(self, self.name)

    return Recorded


def record(recorder):
    """Let every lock that is made from now on tell a recorder."""
    locks.Lock = recording(recorder, locks.Lock)
    locks.InnerLock = recording(recorder, locks.InnerLock)
    locks.ReentrantLock = recording(recorder, type(locks.ReentrantLock()))
    locks.OF_THREAD = locks._OfThread()  # instead of the one that was made before


def record_shared(recorder, kind):
    """Let locks of a class that readers share tell a recorder too."""
    make, reading, writing = kind.__init__, kind.reading, kind.writing

    def made(self):
        make(self)
        self.name = recorder.name()

    def noted(method):
        @contextmanager
        def hold(self):
            with recorder.holding(self, self.name), method(self):
                yield

        return hold

    kind.__init__, kind.reading, kind.writing = made, noted(reading), noted(writing)


def telling(recorder, deed, function):
    """Return a function that tells a recorder of each of its calls."""

    @functools.wraps(function)
    def call(*values, **named):
        recorder.does(deed)
        return function(*values, **named)

    return call
