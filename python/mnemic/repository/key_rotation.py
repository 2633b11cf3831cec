"""Changes the key under which memories are sealed, and destroys it."""

from typing import Final

from mnemic.crypto import KeyProvider, MasterKey
from mnemic.errors import InvalidArgumentError, SealBrokenError
from mnemic.reporting.progress import Report, silent
from mnemic.repository.parts import Part, Shared
from mnemic.store.operations import EndRotation, Reseal, SealedUnderOtherKeys
from mnemic.threads.sync_bridge import arrived, run_blocking

RESEALED_AT_ONCE: Final = 1000
"""Memories of one transaction: other writes wait for about 50 ms."""

_MOST_ROUNDS: Final = 10
"""Rounds over what is left: each write takes in the new key, so few are left after the first. In a
file that somebody else made, a memory may be sealed anew each time and still be one of them."""


class KeyRotation(Part):
    """Seals the memories of one agent under another key.

    Args:
        shared: What it shares with the others.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._encryption = shared.settings.encryption

    async def rotate(self, key: bytes | MasterKey | KeyProvider, report: Report = silent) -> int:
        """Seal under another key from now on, and all that is sealed; see `Memory.rotate_key`."""
        if self._encryption is None:
            raise InvalidArgumentError(
                "the memory was opened without encryption, and has no key to replace; open it with "
                "encryption=Encryption(key=...)"
            )
        rotated = self._encryption.rotated_to(key)
        await run_blocking(lambda: self._store.begin_rotation(self._agent_id, rotated), self._store)
        self._encryption = rotated
        number = await self._resealed(report)
        for _ in range(_MOST_ROUNDS):
            if await arrived(self._store.write(EndRotation(self._agent_id))):
                return number
            again = await self._resealed(silent)  # those that other processes sealed meanwhile
            if not again:
                break
            number += again
        raise await self._unfinished()

    async def _resealed(self, report: Report) -> int:
        total = await run_blocking(self._left, self._store)
        done = after = 0
        report(done, total)
        while True:
            sealed, last = await arrived(
                self._store.write(Reseal(self._agent_id, after, RESEALED_AT_ONCE))
            )
            if not last:
                return done
            done, after = done + sealed, last
            report(done, max(done, total))

    def _left(self) -> int:
        return self._store.read(SealedUnderOtherKeys(self._agent_id))

    async def _unfinished(self) -> SealBrokenError:
        left = await run_blocking(self._left, self._store)
        return SealBrokenError(
            f"{left} sealed memories of agent {self._agent_id!r} do not open, and were not sealed "
            "under the new key; the former keys are kept for them. verify() names them: restore a "
            "backup, or delete them, and rotate again"
        )
