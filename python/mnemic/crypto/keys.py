"""Master keys, the keys that are derived from them, and the library `cryptography`, an extra."""

from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

from mnemic.crypto.envelope import KEY_ID_BYTES, joined
from mnemic.errors import InvalidArgumentError, KeyUnavailableError, MissingExtraError, MnemicError
from mnemic.reporting.description import described, failure, must_be
from mnemic.reporting.habits import NotPickled
from mnemic.reporting.near_names import checks_arguments

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


_PURPOSE: Final = b"agent-memory"
_MAX_NAME: Final = 500


class MasterKey(NotPickled):
    """A master key, from which the keys of all agents are derived; nothing shows it.

    It cannot be pickled or copied.

    Args:
        key: 32 random bytes.
        name: The name under which a `KeyProvider` returns it again, such as the version of a key in
            a key management service. It is stored in plain text. None is the key id in hexadecimal
            digits.

    Raises:
        InvalidArgumentError: If it is not 32 bytes, or the name is not printable, or longer than
            500 characters.
        MissingExtraError: If cryptography is not installed.
    """

    __slots__ = ("_key_id", "_name", "_secret")

    @checks_arguments
    def __init__(self, key: bytes, name: str | None = None) -> None:
        self._secret = checked_key(key)
        info = joined(_PURPOSE, b"key id")
        self._key_id = hkdf(self._secret, salt=b"", info=info, length=KEY_ID_BYTES)
        self._name = self._key_id.hex() if name is None else _checked_name(name)

    @property
    def key_id(self) -> bytes:
        """8 bytes derived from the key: the same everywhere for the same key."""
        return self._key_id

    @property
    def name(self) -> str:
        """The name under which a provider returns it."""
        return self._name

    def derive(self, use: str, agent_id: str, salt: bytes) -> bytes:
        """Return an agent's key for a use, 32 bytes.

        Args:
            use: What the key is for, such as "seal".
            agent_id: The agent.
            salt: The agent's salt: without it the key cannot be derived again.
        """
        info = joined(_PURPOSE, use.encode(), agent_id.encode(), self.key_id)
        return hkdf(self._secret, salt=salt, info=info)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


class KeyProvider(Protocol):
    """Returns master keys, for instance from a key management service. Must be thread-safe."""

    def key(self, name: str | None, /) -> MasterKey:
        """Return a master key.

        It is called when a memory is opened, in the thread that opens it, and may wait. Errors of
        its own surface as `KeyUnavailableError` and are neither quoted nor chained; those of mnemic
        surface unchanged, so that a provider may raise a `KeyUnavailableError` with a message,
        which must not hold a key.

        Args:
            name: None for the key with which new memories are sealed; otherwise the name of a key
                that it returned before, with which older memories are sealed.
        """
        ...


def checked_key(key: object, otherwise: str = "") -> bytes:
    """Return a valid master key.

    Args:
        key: What a caller gave.
        otherwise: What else it may be, for the message.

    Raises:
        InvalidArgumentError: If it is not 32 bytes.
    """
    if type(key) is bytes and len(key) == KEY_BYTES:
        return key
    shown = f"{len(key)} bytes" if isinstance(key, bytes) else described(key)
    raise InvalidArgumentError(
        f"key must be {KEY_BYTES} random bytes{otherwise}, got {shown}; make one by "
        f"secrets.token_bytes({KEY_BYTES}), and keep it apart from the memories: without it sealed "
        "memories are lost"
    )


def provided_key(provider: KeyProvider, name: str | None) -> MasterKey:
    """Return a provider's current key, or the one of a name.

    Raises:
        KeyUnavailableError: If the provider fails, or returns something else.
    """
    found = _called(provider, name)
    wanted = "the current key" if name is None else f"key {name!r}"
    if not isinstance(found, MasterKey):
        raise KeyUnavailableError(
            f"{wanted}: the key provider returned {described(found)}, not a MasterKey"
        )
    if name is not None and found.name != name:
        raise KeyUnavailableError(f"{wanted}: the key provider returned key {found.name!r}")
    return found


def _called(provider: KeyProvider, name: str | None) -> object:
    try:
        return provider.key(name)
    except MnemicError:
        raise
    except Exception as error:  # noqa: BLE001 - of a provider
        kind = failure(error)
    # Raised out here, so that it is not chained to the error, which may quote a key.
    wanted = "its current key" if name is None else f"key {name!r}"
    failed = KeyUnavailableError(f"the key provider failed to return {wanted}: {kind}")
    failed.kind = kind
    raise failed


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _MAX_NAME:
        raise must_be("name", f"a printable text of 1 to {_MAX_NAME} characters", name)
    return name
