from mnemic.crypto.encryption import Encryption as Encryption
from mnemic.crypto.keys import KeyProvider as KeyProvider
from mnemic.crypto.keys import MasterKey as MasterKey
from mnemic.crypto.sealer import Sealer as Sealer
from mnemic.crypto.sealer import new_salt as new_salt
