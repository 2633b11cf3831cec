"""The sealer of an agent: sealed fields, keyed fingerprints, and the check of a key."""

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from mnemic._core import fingerprint_digests
from mnemic.crypto import envelope
from mnemic.crypto.envelope import NONCE, TEXT, data_after_entry
from mnemic.crypto.keys import MasterKey, aes_gcm, invalid_tag
from mnemic.errors import SealBrokenError, WrongKeyError
from mnemic.reporting.habits import NotPickled

if TYPE_CHECKING:
    import hmac


Nonces: TypeAlias = Callable[[int], list[bytes]]
"""Returns so many new nonces."""

RANDOM_BYTES: Final = 8
COUNTER_BYTES: Final = 4

_MASK: Final = 2 ** (8 * COUNTER_BYTES) - 1

# No two nonces of one key are equal. One is 8 random bytes and a counter of 4, the process's: for
# 2**32 seals in a row no nonce can come twice, whatever the random bytes are. Those are fresh for
# each nonce, and tell apart processes, and copies of a process that go on from one counter: a fork,
# or a restored snapshot of a machine. As the counter begins anywhere, n nonces of many processes
# collide with the probability of random nonces, n² / 2**97: one in 2**33 for 2**32 memories of one
# agent.
# One step of it is one call into C, which no thread interrupts; a lock would be held for ever in
# a process that is forked off while another thread has it.
_counter: Final = itertools.count(int.from_bytes(os.urandom(COUNTER_BYTES), "big"))


def new_nonces(count: int) -> list[bytes]:
    """Return new nonces, from any thread and any process."""
    random = os.urandom(RANDOM_BYTES * count)
    return [
        random[at : at + RANDOM_BYTES] + (next(_counter) & _MASK).to_bytes(COUNTER_BYTES, "big")
        for at in range(0, len(random), RANDOM_BYTES)
    ]


SALT_BYTES: Final = 32
_DIGEST_BYTES: Final = 16  # as those of plain fingerprints

_NO_ENTRY: Final = bytes(envelope.ENTRY_ID_BYTES)
_CHECK_FIELD: Final = "check"
_CHECK_TEXT: Final = b"mnemic"


def new_salt() -> bytes:
    """Return a random salt for a new agent; what it sealed is lost with it."""
    return os.urandom(SALT_BYTES)


class Sealer(NotPickled):
    """Seals and opens the fields of one agent's memories, from any thread.

    Each agent's keys are derived from the master key and the agent's salt: whoever destroys the
    salt has destroyed everything that was sealed under it. A sealed field opens only as the field,
    entry, agent and model that it was sealed for.

    Args:
        master: The master key.
        agent_id: The agent, as it is stored.
        salt: The agent's salt, 32 bytes, as of `new_salt`.
        nonces: Makes nonces; others than the default are for tests of the format.

    Attributes:
        key_id: The id of the master key, 8 bytes.
        key_name: Its name.

    Raises:
        ValueError: If the salt does not have 32 bytes.
        MissingExtraError: If cryptography is not installed.
    """

    def __init__(
        self, master: MasterKey, agent_id: str, salt: bytes, *, nonces: Nonces = new_nonces
    ) -> None:
        if len(salt) != SALT_BYTES:
            raise ValueError(f"a salt has {SALT_BYTES} bytes, not {len(salt)}")
        self.key_id: bytes = master.key_id
        self.key_name: str = master.name
        self._agent_id = agent_id
        self._nonces = nonces
        self._cipher = aes_gcm(master.derive("seal", agent_id, salt))
        self._invalid_tag = invalid_tag()
        import hmac  # noqa: PLC0415 - loads OpenSSL, and most memories are not sealed

        hash_key = master.derive("fingerprint", agent_id, salt)
        mac = hmac.new(hash_key, digestmod="sha256")
        self._of_content = _started(mac, b"content")
        self._of_key = _started(mac, b"idempotency key")
        self._header = envelope.header(master.key_id)
        self._data = envelope.data_before_entry(master.key_id, agent_id)

    def seal(self, plain: bytes, entry_id: bytes, field: str, model: str = "") -> bytes:
        """Return a sealed field, 37 bytes longer than the plain one.

        Args:
            plain: The field's bytes.
            entry_id: Id of the entry, 16 bytes.
            field: Name of the field; a part of several has a name of its own.
            model: Model of an embedding.
        """
        data = self._before(entry_id) + data_after_entry(field, model)
        (nonce,) = self._nonces(1)
        return self._header + nonce + self._cipher.encrypt(nonce, plain, data)

    def seal_many(
        self, plain: Sequence[bytes], entry_ids: Iterable[bytes], field: str, model: str = ""
    ) -> list[bytes]:
        """Seal one field of several entries; see `seal`."""
        encrypt, header, after = self._cipher.encrypt, self._header, data_after_entry(field, model)
        return [
            header + nonce + encrypt(nonce, one, self._before(entry_id) + after)
            for nonce, one, entry_id in zip(self._nonces(len(plain)), plain, entry_ids, strict=True)
        ]

    def open(self, sealed: object, entry_id: bytes, field: str, model: str = "") -> bytes:
        """Return the plain bytes of a sealed field.

        Args:
            sealed: What `seal` returned.
            entry_id: Id of the entry, 16 bytes.
            field: Name of the field.
            model: Model of an embedding.

        Raises:
            SealBrokenError: If it is damaged, or was sealed for something else, or by another key.
        """
        if type(sealed) is not bytes or not sealed.startswith(self._header):
            raise self._foreign(sealed, entry_id, field)
        data = self._before(entry_id) + data_after_entry(field, model)
        try:
            return self._cipher.decrypt(sealed[NONCE], sealed[TEXT], data)
        except (self._invalid_tag, ValueError):  # the latter of a nonce that is cut off
            raise _broken(entry_id, field) from None

    def fingerprints(self, contents: list[str]) -> list[bytes]:
        """Return the keyed fingerprint of each content, 16 bytes; equal for equivalent texts.

        Without the key it is unknown whether a fingerprint is that of a guessed text.
        """
        return [self.keyed_fingerprint(digest) for digest in fingerprint_digests(contents)]

    def keyed_fingerprint(self, digest: bytes) -> bytes:
        """Return the keyed fingerprint of a content of which only the plain fingerprint is known.

        Args:
            digest: The plain fingerprint, 16 bytes, or the digest that it begins.
        """
        return _keyed(self._of_content, digest[:_DIGEST_BYTES])

    def keyed(self, idempotency_key: str) -> bytes:
        """Return the keyed hash of an idempotency key, 16 bytes."""
        return _keyed(self._of_key, idempotency_key.encode())

    def check_value(self) -> bytes:
        """Return a value to be stored, by which `verify_check` recognises this key."""
        return self.seal(_CHECK_TEXT, _NO_ENTRY, _CHECK_FIELD)

    def verify_check(self, value: object) -> None:
        """Check that memories are sealed under this key.

        Args:
            value: The stored `check_value`.

        Raises:
            WrongKeyError: If they are sealed under another key.
            SealBrokenError: If the value or the salt is damaged, or belongs to another agent.
        """
        found = envelope.key_id_of(value)
        if found is not None and found != self.key_id:
            raise WrongKeyError(self._agent_id, found.hex(), self.key_id.hex())
        try:
            self.open(value, _NO_ENTRY, _CHECK_FIELD)
        except SealBrokenError:
            raise SealBrokenError(
                f"agent {self._agent_id!r}: the check value of its key is damaged, or its salt is, "
                "or they belong to another agent; restore a backup of the memory"
            ) from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(agent_id={self._agent_id!r}, key_name={self.key_name!r})"

    def _before(self, entry_id: bytes) -> bytes:
        """Return the associated data up to an entry's id and the id, whose length is fixed."""
        if len(entry_id) != envelope.ENTRY_ID_BYTES:
            raise ValueError(f"an entry id has 16 bytes, not {len(entry_id)}")
        return self._data + entry_id

    def _foreign(self, sealed: object, entry_id: bytes, field: str) -> SealBrokenError:
        """Return the error of a field that does not begin with this sealer's header."""
        found = envelope.key_id_of(sealed)
        if found is None or found == self.key_id:
            return _broken(entry_id, field)
        return _broken(entry_id, field, f"sealed under key {found.hex()}, not {self.key_id.hex()}")


def _started(mac: "hmac.HMAC", use: bytes) -> "hmac.HMAC":
    """Return the code of `joined(use, data)` before the data."""
    started = mac.copy()
    started.update(envelope.joined(use))
    return started


def _keyed(started: "hmac.HMAC", data: bytes) -> bytes:
    mac = started.copy()  # hmac.digest() takes half as long again, to find SHA-256
    mac.update(envelope.joined(data))
    return mac.digest()[:_DIGEST_BYTES]


def _broken(entry_id: bytes, field: str, reason: str = "") -> SealBrokenError:
    entry = UUID(bytes=entry_id)
    fault = reason or "damaged, or was sealed for another memory, agent, field or model"
    return SealBrokenError(
        f"memory {entry}: its sealed {field} is {fault}; restore a backup, or delete the memory",
        entry,
    )
