"""Tests of the PostgreSQL store beyond the contract."""
