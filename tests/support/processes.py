"""Child processes of tests."""

import os
import sys

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
"""Lets a child import what this process can, the folder `tests` included."""
