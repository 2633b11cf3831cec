"""The package's loggers, apart from `import mnemic`: the first one imports `logging`."""

import logging

# Without it Python prints warnings of a program that has not set up logging to its stderr.
logging.getLogger("mnemic").addHandler(logging.NullHandler())


def logger(name: str) -> logging.Logger:
    """Return the logger of a module or a part of the package, below `mnemic`."""
    return logging.getLogger(name)
