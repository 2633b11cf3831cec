"""Other memories beside mnemic: quality, latency and filtered answers, in one run."""
