"""The asv suite: `make asv` measures the installed mnemic, without building another."""

import sys
from pathlib import Path

# asv starts its processes elsewhere; the data come from the modules beside this package.
sys.path.insert(0, str(Path(__file__).parents[2]))
