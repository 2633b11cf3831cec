"""What the stores in SQLite and in PostgreSQL share: statements, and what a dialect writes in them.

Statements are written once: tables as `mnemic.agent_memory_…`, which SQLite knows without a schema,
and placeholders as `?`. Ids are bound as UUIDs, and rows as lists.
"""
