"""Progress of long work, reported to a program's function, or shown on the terminal."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final, TypeAlias

from mnemic.errors import InvalidArgumentError
from mnemic.reporting.description import described, failure

Progress: TypeAlias = Callable[[int, int | None], object] | Callable[[int], object] | bool
"""A function that is called with the number done so far and their total, or None where it is not
known; or True to show a bar on a terminal, and a line a second where stderr is none.

A function that takes one argument gets the number alone. It may be called from another thread,
one call at a time, and delays the work. If it raises, that is logged and it is not called again:
the work goes on, and nothing of it is lost.
"""

Report: TypeAlias = Callable[[int, int | None], object]
"""Takes the number done so far, and their total; None where it is not known."""

SECONDS_BETWEEN_LINES: Final = 1.0
BAR_WIDTH: Final = 20


def silent(done: int, total: int | None) -> None:
    """Ignore a report."""
    del done, total


@contextmanager
def reporting(progress: Progress | None, name: str) -> Generator[Report, None, None]:
    """Yield the function to report to.

    Args:
        progress: A program's choice; None and False are none.
        name: Name of the work, for bars and lines.

    Raises:
        InvalidArgumentError: If it is neither a function, nor True, False or None.
    """
    checked_progress(progress)
    if progress is None or progress is False:
        yield silent
    elif progress is True:
        with progress_bar(name) as show:
            yield show
    else:
        yield _GuardedReport(_of_two(progress))


@contextmanager
def progress_bar(name: str) -> Generator[Callable[[int, int | None], object], None, None]:
    """Show how far a long work is on stderr, as calls with `progress=True` do.

    A terminal has one line with a bar, anything else a line for each report: at most one a second,
    and none for work of less than a second.

    Args:
        name: Name of the work.

    Yields:
        A function that takes the number done so far and their total, None where it is not known.
    """
    display = Display(name)
    try:
        yield display.show
    finally:
        display.close()


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


class _GuardedReport:
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
            from mnemic.reporting.logs import logger  # noqa: PLC0415 - loads logging

            # Its message may quote what the function looked up.
            logger("mnemic.reporting.progress").error(
                "A progress function failed, and is not called again: %s", failure(error)
            )


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


class Display:
    """Shows numbers on stderr, at most once a second; none of work of less than a second.

    A terminal has one line with a bar, which changes; anything else gets line after line.

    Args:
        name: Name of the work.
        clock: Returns seconds.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._shown_at = clock()
        self._line = self._shown = self._bar = ""

    def show(self, done: int, total: int | None) -> None:
        """Show numbers if a second has passed since the last ones."""
        self._line = f"{self._name}: {done}"
        if total:
            self._line += f" of {total} ({done * 100 // total} %)"
            self._bar = "#" * (done * BAR_WIDTH // total)
        if self._clock() - self._shown_at >= SECONDS_BETWEEN_LINES:
            self._print()
            self._shown, self._shown_at = self._line, self._clock()

    def close(self) -> None:
        """Show the last numbers, if any were shown before."""
        if self._shown:
            self._print(end="\n")

    def _print(self, end: str = "") -> None:
        terminal = sys.stderr
        if terminal is None:  # of a program without a console
            return
        with suppress(OSError, ValueError):  # of a closed terminal or pipe: the work goes on
            if terminal.isatty():
                terminal.write(f"\r[{self._bar:{BAR_WIDTH}}] {self._line}{end}")
            elif self._line != self._shown:
                terminal.write(f"{self._line}\n")
            terminal.flush()
