"""The columns of an entry that are sealed, and those that stay in plain text."""

from typing import Final

SEALED_COLUMNS: Final = (
    *("content", "metadata", "tags", "speaker", "category", "source", "role", "scope"),
    *("message_id", "type_name"),
)
"""Stored names of the columns whose values a codec that seals puts into the sealed field."""

COPIED_COLUMNS: Final = ("user_id", "is_sensitive", "created_at")
"""Plain columns of which a copy is sealed: a row given to another user does not open."""
