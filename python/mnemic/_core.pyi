from collections.abc import Iterable
from typing import Final

__all__ = ["FINGERPRINT_VERSION", "fingerprint", "fingerprint_digests"]

FINGERPRINT_VERSION: Final[int]
"""The version of the normal form behind fingerprints; keep it beside those you store."""

def fingerprint(text: str, /) -> str:
    """Return the first 16 hexadecimal characters of the SHA-256 of `text`'s normal form.

    Texts that differ only in case, width, white space or the punctuation around them agree. The 64
    bits are for display; compare the digests of `fingerprint_digests` (C032). The normal form is
    described in docs/fingerprint.md. The interpreter is detached for texts of 2 KB and more.

    Args:
        text: Any text, also an empty one.

    Raises:
        TypeError: If `text` is not a str.
        InvalidArgumentError: If `text` holds a lone surrogate, which UTF-8 cannot express.
    """

def fingerprint_digests(texts: Iterable[str], /) -> list[bytes]:
    """Return the SHA-256 of each text's normal form: 32 bytes each, in the order of `texts`.

    The interpreter is detached while hashing. Nothing is returned if one text cannot be used.

    Args:
        texts: Any iterable of str, but not one str.

    Raises:
        TypeError: If `texts` is a str or no iterable, or an item is not a str.
        InvalidArgumentError: If an item holds a lone surrogate; the message has index and position.
    """
