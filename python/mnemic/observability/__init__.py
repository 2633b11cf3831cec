"""Events, metrics and log lines."""
