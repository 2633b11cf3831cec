"""Adapters for other frameworks, tested by those frameworks' own suites (`make outside`)."""
