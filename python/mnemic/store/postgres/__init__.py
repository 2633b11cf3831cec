"""The store in PostgreSQL with pgvector, for several processes and machines."""
