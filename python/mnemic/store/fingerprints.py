"""Stored fingerprints of contents: equal for equivalent texts."""

import unicodedata

from mnemic._core import fingerprint_digests

_BYTES = 16  # 128 bits: two of 2**32 texts collide with probability 2**-65


def fingerprint(content: str) -> bytes:
    """Return a content's fingerprint, equal for equivalent texts; as `mnemic.model.fingerprint`."""
    return fingerprints([content])[0]


def earlier_fingerprint(content: str) -> bytes:
    """Return a content's fingerprint of version 1, which took raised digits for others."""
    return fingerprint(unicodedata.normalize("NFKC", content))


def fingerprints(contents: list[str]) -> list[bytes]:
    """Return the fingerprint of each content."""
    return [digest[:_BYTES] for digest in fingerprint_digests(contents)]


def exact_digest(data: bytes) -> str:
    """Return a digest of 64 hexadecimal characters that every byte changes.

    It is the SHA-256 of the bytes in hexadecimal, which are their own normal form: `hashlib` loads
    OpenSSL, a fiftieth of the time in which a command searches.
    """
    return fingerprint_digests([data.hex()])[0].hex()
