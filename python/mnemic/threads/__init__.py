"""Threads and event loops: plain calls from coroutines, loops in threads, cancelled tasks."""
