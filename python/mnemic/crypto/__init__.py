"""Sealing: keys of agents, the format of sealed fields, detection of sensitive texts.

Nothing here imports the library `cryptography`, an extra, before a key is used.
"""

from mnemic.crypto.encryption import Encryption
from mnemic.crypto.keys import KeyProvider, MasterKey
from mnemic.crypto.sealer import Sealer, new_salt

__all__ = ["Encryption", "KeyProvider", "MasterKey", "Sealer", "new_salt"]
