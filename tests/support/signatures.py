"""Names of what calls take."""

import inspect


def parameters(function):
    """Return the names of a function's parameters, without `self`."""
    return set(inspect.signature(function).parameters) - {"self"}
