# ruff: noqa: INP001 - a program alone in its folder
"""Starts the server of the bundle."""

import sys

from mnemic.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["mcp", *sys.argv[1:]]))
