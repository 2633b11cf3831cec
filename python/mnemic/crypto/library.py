"""The primitives of the library `cryptography`, an extra that is imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from mnemic.errors import MissingExtraError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES: Final = 32
"""Bytes of every key: AES-256 and HMAC-SHA256."""


def require_library() -> None:
    """Import the library.

    Raises:
        MissingExtraError: If it is not installed, or cannot be loaded.
    """
    try:
        import_module("cryptography.hazmat.primitives.ciphers.aead")
    except ImportError as error:
        raise MissingExtraError(
            "sealed memories need cryptography: python -m pip install 'mnemic[crypto]'"
        ) from error


def aes_gcm(key: bytes) -> "AESGCM":
    """Return AES-256 in Galois/Counter Mode (NIST SP 800-38D) with a key.

    Raises:
        MissingExtraError: If the library is not installed.
    """
    require_library()
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - an extra

    return AESGCM(key)


def invalid_tag() -> type[Exception]:
    """Return the error of a ciphertext that does not verify."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra

    return InvalidTag


def hkdf(secret: bytes, *, salt: bytes, info: bytes, length: int = KEY_BYTES) -> bytes:
    """Derive a key: HKDF with SHA-256 (RFC 5869).

    Args:
        secret: The input keying material.
        salt: Random bytes that need not be secret; empty is none.
        info: What the key is for.
        length: Bytes of the key.

    Raises:
        MissingExtraError: If the library is not installed.
    """
    require_library()
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415 - an extra

    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)
