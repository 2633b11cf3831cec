"""Progress of long work, reported to a program's function, or shown on the terminal."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol, TypeAlias

from mnemic.description import described, failure
from mnemic.errors import InvalidArgumentError
from mnemic.logs import logger

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

Progress: TypeAlias = Callable[[int, int | None], object] | Callable[[int], object] | bool
"""A function that is called with the number done so far and their total, or None where it is not
known; or True to show a bar where rich is installed, and lines on stderr where it is not.

A function that takes one argument gets the number alone. It may be called from another thread,
one call at a time, and delays the work. If it raises, that is logged and it is not called again:
the work goes on, and nothing of it is lost.
"""

Report: TypeAlias = Callable[[int, int | None], object]
"""Takes the number done so far, and their total; None where it is not known."""

SECONDS_BETWEEN_LINES = 1.0

_GONE = OSError, ValueError
"""What writing to a closed terminal or pipe raises."""

_log = logger("mnemic.progress")


class _Display(Protocol):
    """Shows numbers until it is closed."""

    def show(self, done: int, total: int | None) -> None: ...

    def close(self) -> None: ...


def silent(done: int, total: int | None) -> None:
    """Report to nobody."""
    del done, total


@contextmanager
def reporting(progress: Progress | None, name: str) -> Generator[Report, None, None]:
    """Yield the function to report to.

    Args:
        progress: A program's choice; None and False are none.
        name: Name of the work, for lines and bars.

    Raises:
        InvalidArgumentError: If it is neither a function, nor True, False or None.
    """
    checked_progress(progress)
    if progress is None or progress is False:
        yield silent
    elif progress is True:
        display = _Quiet(_display(name))
        display.show(0, None)
        try:
            yield display.show
        finally:
            display.close()
    else:
        yield _Guarded(_of_two(progress))


def checked_progress(progress: object) -> None:
    """Raise InvalidArgumentError if a value is no progress."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise InvalidArgumentError(
            "progress must be a function of the number done and the total, True for a bar, or "
            f"None, got {described(progress)}"
        )
    if callable(progress) and _is_coroutine(progress):
        raise InvalidArgumentError(
            "progress must be a plain function, got a coroutine function, which nothing would "
            "await: the work reports from another thread"
        )


def _is_coroutine(function: Callable[..., object]) -> bool:
    from inspect import iscoroutinefunction  # noqa: PLC0415 - as in `_of_two`

    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)


class _Guarded:
    """Calls a function until it fails."""

    def __init__(self, function: Report) -> None:
        self._function = function
        self._has_failed = False

    def __call__(self, done: int, total: int | None) -> None:
        if self._has_failed:
            return
        try:
            self._function(done, total)
        except Exception as error:  # noqa: BLE001 - the work goes on
            self._has_failed = True
            # Its message may quote what the function looked up.
            _log.error("A progress function failed, and is not called again: %s", failure(error))


def _of_two(function: Callable[..., object]) -> Report:
    """Return a function that takes two arguments; the given one may take the first alone."""
    return function if _takes_total(function) else lambda done, _: function(done)


def _takes_total(function: Callable[..., object]) -> bool:
    from inspect import Parameter, signature  # noqa: PLC0415 - takes 12 ms, and is needed here alone

    try:
        shape = signature(function)
        shape.bind(0, None)
    except (TypeError, ValueError):  # of one argument, or a compiled function without a signature
        return False
    # The second may be the function's own: `lambda done, bar=bar: bar.update(done)`.
    second = [each.default for each in shape.parameters.values()][1:2]
    return not second or second[0] is None or second[0] is Parameter.empty


def _display(name: str) -> _Display:
    try:
        from rich.progress import Progress as Bar  # noqa: PLC0415 - of an extra
    except ImportError:
        return Lines(name)
    return _Bar(name, Bar)


class _Quiet:
    """Shows numbers on a terminal that may be gone: the work goes on all the same."""

    def __init__(self, display: _Display) -> None:
        self._display = display
        self._is_gone = False

    def show(self, done: int, total: int | None) -> None:
        if self._is_gone:
            return
        try:
            self._display.show(done, total)
        except _GONE:
            self._is_gone = True

    def close(self) -> None:
        with suppress(*_GONE):
            self._display.close()


class _Bar:
    """Shows a bar on stderr."""

    def __init__(self, name: str, kind: "type[RichProgress]") -> None:
        from rich.console import Console  # noqa: PLC0415 - of an extra

        class Stderr(Console):
            def on_broken_pipe(self) -> None:
                """Write no more; the method of rich ends the process."""
                self.quiet = True

        # What the program prints meanwhile stays on stdout, which may be a file.
        self._bar = kind(console=Stderr(stderr=True), redirect_stdout=False)
        self._task = self._bar.add_task(name, total=None)

    def show(self, done: int, total: int | None) -> None:
        self._bar.start()
        self._bar.update(self._task, completed=done, total=total)

    def close(self) -> None:
        self._bar.stop()


class Lines:
    """Prints a line on stderr, at most once a second; none for work of less than a second.

    Args:
        name: Name of the work.
        clock: Returns seconds.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._printed_at = clock()
        self._has_printed = False
        self._last = ""

    def show(self, done: int, total: int | None) -> None:
        """Print a line if a second has passed since the last one."""
        share = "" if not total else f" of {total} ({done * 100 // total} %)"
        self._last = f"{self._name}: {done}{share}"
        if self._clock() - self._printed_at >= SECONDS_BETWEEN_LINES:
            self._print()

    def close(self) -> None:
        """Print the last numbers, if any were printed before."""
        if self._has_printed and self._last:
            self._print()

    def _print(self) -> None:
        if sys.stderr is None:  # of a program without a console
            return
        print(self._last, file=sys.stderr, flush=True)  # noqa: T201 - the program asked for it
        self._printed_at, self._has_printed, self._last = self._clock(), True, ""
