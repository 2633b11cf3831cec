"""Options of encryption."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Final, Literal, TypeAlias, cast

from mnemic._core import Redactor, redaction_names
from mnemic.crypto.keys import KeyProvider, MasterKey, checked_key, provided_key, require_library
from mnemic.errors import DetectorError, InvalidArgumentError, RedactionBudgetError
from mnemic.model import validation
from mnemic.reporting.description import described, failure, must_be
from mnemic.reporting.habits import NotPickled
from mnemic.reporting.near_names import names_arguments

Detector: TypeAlias = Callable[[str], bool] | Literal["pii"]
"""A function that returns whether a text is sensitive, or "pii": personal data and secrets by the
patterns of `mnemic.policy.KNOWN_PATTERNS`."""


def checked_detector(detector: object) -> Callable[[str], bool] | None:
    """Return the function of a detector; None is no detection.

    Raises:
        InvalidArgumentError: If it is neither a function nor "pii".
    """
    if detector is None:
        return None
    if isinstance(detector, str) and detector == "pii":
        return has_personal_data
    if callable(detector):
        return cast("Callable[[str], bool]", detector)
    raise InvalidArgumentError(
        f"detect must be 'pii', a function of a text, or None; got {described(detector)}"
    )


def has_personal_data(text: str) -> bool:
    """Return whether a text matches a known pattern of personal data or secrets.

    A text that takes too many reads to tell counts as one that does.
    """
    try:
        return _redactor().redact(text)[1] > 0
    except RedactionBudgetError:
        return True


def detected(detect: Callable[[str], bool], text: str) -> bool:
    """Return a detector's answer.

    Raises:
        DetectorError: If it fails, or returns something else than a bool.
    """
    try:
        answer = detect(text)
    except Exception as error:  # noqa: BLE001 - of a function of the user's
        kind = failure(error)
    else:
        if isinstance(answer, bool):
            return answer
        kind = f"it returned {described(answer)}, not a bool"
    # Raised out here, so that it is not chained to the error, which may quote the text.
    failed = DetectorError(f"the detector of sensitive texts failed: {kind}")
    failed.kind = kind
    raise failed


@cache
def _redactor() -> Redactor:
    names, _ = redaction_names()
    return Redactor([(name, None, None) for name in names], "")


@names_arguments
class Encryption(NotPickled):
    """Which memories are sealed (AES-256-GCM), and by which key. Immutable; nothing shows the key.

    Memories with `sensitive=True` always are; the options add others. Every agent has keys of its
    own, derived from the master key. It cannot be pickled or copied: a process that opens the
    memory makes one.

    Args:
        key: The master key, 32 random bytes as of `secrets.token_bytes(32)`, or a `MasterKey`, or a
            `KeyProvider`. Without it sealed memories are lost.
        previous: Earlier master keys, which open what is still sealed under them, as while a
            rotation of keys is not complete.
        encrypt_all: Whether every new memory is sealed.
        detect: Tells which texts are sensitive: "pii" finds personal data and secrets by the
            patterns of `mnemic.policy.KNOWN_PATTERNS`, and a function is called with each text from
            any thread. None leaves it to `sensitive`.

    Raises:
        InvalidArgumentError: If an argument is invalid.
        MissingExtraError: If cryptography is not installed.
    """

    __slots__ = ("_detect", "_encrypt_all", "_key", "_previous")

    def __init__(
        self,
        key: bytes | MasterKey | KeyProvider,
        *,
        previous: Sequence[bytes | MasterKey] = (),
        encrypt_all: bool = False,
        detect: Detector | None = None,
    ) -> None:
        require_library()
        self._key: Final = _checked_key(key)
        self._previous: Final = tuple(map(_checked_previous, _listed(previous)))
        self._encrypt_all: Final = validation.flag("encrypt_all", encrypt_all)
        self._detect: Final = checked_detector(detect)

    @property
    def encrypt_all(self) -> bool:
        """Whether every new memory is sealed."""
        return self._encrypt_all

    def is_sensitive(self, text: str) -> bool:
        """Return whether a text is to be sealed by these options.

        Args:
            text: A content, or another text of a memory.

        Raises:
            DetectorError: If the detector fails, or returns something else than a bool.
        """
        if self.encrypt_all:
            return True
        return self._detect is not None and detected(self._detect, text)

    def detects(self, texts: Iterable[str]) -> bool:
        """Return whether the detector finds one of these texts sensitive; False without one.

        Args:
            texts: A content, and other texts of a memory.

        Raises:
            DetectorError: If the detector fails, or returns something else than a bool.
        """
        detect = self._detect
        return detect is not None and any(detected(detect, text) for text in texts)

    def master_key(self) -> MasterKey:
        """Return the key under which new memories are sealed.

        Raises:
            KeyUnavailableError: If the key provider fails.
        """
        return self._key if isinstance(self._key, MasterKey) else provided_key(self._key, None)

    def known_key(self, key_id: bytes, name: str) -> MasterKey | None:
        """Return the key with an id; None if no key that was given has it.

        Args:
            key_id: The id, 8 bytes.
            name: The name under which a provider returned it.

        Raises:
            KeyUnavailableError: If the key provider fails, or has none of this name.
        """
        given = (*([self._key] if isinstance(self._key, MasterKey) else ()), *self._previous)
        known = next((key for key in given if key.key_id == key_id), None)
        if known is not None or isinstance(self._key, MasterKey):
            return known
        found = provided_key(self._key, name)
        return found if found.key_id == key_id else None

    def rotated_to(self, key: "bytes | MasterKey | KeyProvider") -> "Encryption":
        """Return the same options with another current key; those until now open older memories.

        Args:
            key: The new key, as for the constructor.

        Raises:
            InvalidArgumentError: If the key is invalid.
            KeyUnavailableError: If a key provider fails.
        """
        return Encryption(
            key,
            previous=(self.master_key(), *self._previous),
            encrypt_all=self._encrypt_all,
            detect=self._detect,
        )

    def __repr__(self) -> str:
        key = repr(self._key) if isinstance(self._key, MasterKey) else described(self._key)
        return f"{type(self).__name__}({key}, encrypt_all={self.encrypt_all})"


def _checked_key(key: object) -> MasterKey | KeyProvider:
    if isinstance(key, MasterKey):
        return key
    if callable(getattr(key, "key", None)):
        return cast("KeyProvider", key)
    return MasterKey(
        checked_key(key, " or a MasterKey or a KeyProvider, which has a method key(name)")
    )


def _checked_previous(key: object) -> MasterKey:
    return key if isinstance(key, MasterKey) else MasterKey(checked_key(key, " or a MasterKey"))


def _listed(previous: object) -> Sequence[object]:
    if isinstance(previous, list | tuple):
        return previous
    raise must_be("previous", "a list of keys", previous)
