"""The asv suite: `asv run --python=same --quick` measures the installed mnemic."""
