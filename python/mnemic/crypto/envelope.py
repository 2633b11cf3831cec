"""The format of a sealed field.

    version    1 byte    `VERSION`
    key id     8 bytes   of the master key
    nonce     12 bytes
    text       any       AES-256-GCM
    tag       16 bytes

The tag also covers the associated data: version, key id, agent id, entry id, field and model, each
with its length before it, so that no two lists of fields are the same bytes.
"""

from functools import lru_cache
from typing import Final

VERSION: Final = 1
KEY_ID_BYTES: Final = 8
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
ENTRY_ID_BYTES: Final = 16

KEY_ID: Final = slice(1, 1 + KEY_ID_BYTES)
NONCE: Final = slice(KEY_ID.stop, KEY_ID.stop + NONCE_BYTES)
TEXT: Final = slice(NONCE.stop, None)
"""The text with its tag."""

OVERHEAD: Final = NONCE.stop + TAG_BYTES
"""Bytes by which a sealed field is longer than its plain text."""

_LENGTH_BYTES: Final = 4


def joined(*fields: bytes) -> bytes:
    """Return fields as one text, each with its length before it (4 bytes, big-endian)."""
    return b"".join(_length(len(field)) + field for field in fields)


def header(key_id: bytes) -> bytes:
    """Return the bytes before the nonce."""
    return bytes([VERSION]) + key_id


def data_before_entry(key_id: bytes, agent_id: str) -> bytes:
    """Return the associated data up to an entry's id, with the length of the latter."""
    fields = joined(bytes([VERSION]), key_id, agent_id.encode())
    return fields + _length(ENTRY_ID_BYTES)


@lru_cache(256)
def data_after_entry(field: str, model: str) -> bytes:
    """Return the associated data after an entry's id."""
    return joined(field.encode(), model.encode())


def key_id_of(sealed: object) -> bytes | None:
    """Return the id of the key with which a field was sealed; None if it is not this format's.

    The id is not verified.
    """
    if type(sealed) is not bytes or len(sealed) < OVERHEAD or sealed[0] != VERSION:
        return None
    return sealed[KEY_ID]


def _length(count: int) -> bytes:
    return count.to_bytes(_LENGTH_BYTES, "big")
