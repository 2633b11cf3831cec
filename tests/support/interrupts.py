"""A KeyboardInterrupt at a chosen moment of a call, or what a signal handler does there."""

import gc
import sys
from itertools import count
from pathlib import Path

import mnemic

PACKAGE = str(Path(mnemic.__file__).parent)
"""The files of mnemic's own functions."""


def interrupted_at(moment, call, within=""):
    """Raise KeyboardInterrupt at a moment of a call; return whether the call ended before.

    The moments are calls and returns of Python functions, where signals are handled; with `within`
    of functions in files below a path alone. An interrupt may surface as a RuntimeError of the
    standard library.
    """

    def interrupt():
        raise KeyboardInterrupt

    return handled_at(moment, call, interrupt, within)


def handled_at(moment, call, handle, within="", events=("call", "return")):
    """Call a function at a moment of a call, as `interrupted_at` raises KeyboardInterrupt.

    With other `events`, such as those of lines, the moments are those.
    """
    moments = count()

    def trace(frame, event, _value):
        is_inside = frame.f_code.co_filename.startswith(within)
        if is_inside and event in events and next(moments) == moment:
            handle()
        return trace

    before, is_collecting = sys.gettrace(), gc.isenabled()
    gc.disable()  # a finalizer that is interrupted is no moment of the call
    sys.settrace(trace)
    try:
        call()
    except (KeyboardInterrupt, TimeoutError, RuntimeError):
        pass
    finally:
        sys.settrace(before)
        if is_collecting:
            gc.enable()
    return next(moments) <= moment
