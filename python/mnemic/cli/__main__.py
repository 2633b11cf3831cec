"""Run the command: `python -m mnemic.cli`."""

import sys

from mnemic.cli.main import command

if __name__ == "__main__":
    sys.exit(command())
