"""Run the command: `python -m mnemic.cli`."""

import sys

from mnemic.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
