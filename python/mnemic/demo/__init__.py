"""A first look at mnemic: `python -m mnemic.demo`."""
