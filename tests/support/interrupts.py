"""A KeyboardInterrupt at a chosen moment of a call."""

import gc
import sys
from itertools import count


def interrupted_at(moment, call):
    """Raise KeyboardInterrupt at a moment of a call; return whether the call ended before.

    The moments are calls and returns of Python functions, where signals are handled. An interrupt
    may surface as a RuntimeError of the standard library.
    """
    moments = count()

    def trace(_frame, event, _value):
        if event in {"call", "return"} and next(moments) == moment:
            raise KeyboardInterrupt
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
