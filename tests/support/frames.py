"""The lines of mnemic that the traceback of an error shows."""

import traceback
from pathlib import Path

import mnemic
import mnemic_files

_ROOMS = tuple(str(Path(package.__file__).parent) for package in (mnemic, mnemic_files))


def frames_of_mnemic(error):
    """Return file, line and function of each frame of mnemic that is printed with an error.

    Errors that it is chained to are printed too, unless one is told to hide them.
    """
    found = []
    told = traceback.TracebackException.from_exception(error)
    while told is not None:
        found += [frame for frame in told.stack if frame.filename.startswith(_ROOMS)]
        told = told.__cause__ or (None if told.__suppress_context__ else told.__context__)
    return found
