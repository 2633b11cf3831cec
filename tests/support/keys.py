"""A master key, an agent's sealer, and the forms in which a key could show."""

import base64
import traceback

from mnemic.crypto import MasterKey, Sealer

KEY = bytes(range(32))
OTHER_KEY = bytes(range(32, 64))
SALT = bytes(range(100, 132))
AGENT = "agent"
ENTRY = bytes(range(16))
OTHER_ENTRY = bytes(range(1, 17))


def sealer(key=KEY, agent=AGENT, salt=SALT, **options):
    return Sealer(MasterKey(key), agent, salt, **options)


def fixed_nonces(count):
    """Return the nonces 0, 1, 2 …, for the format alone."""
    return [number.to_bytes(12, "big") for number in range(count)]


def forms_of(key):
    """Return the texts by which a key would be known, short parts of it included."""
    encoded = (base64.b64encode(key), base64.urlsafe_b64encode(key), base64.b32encode(key))
    whole = [key.hex(), key.hex(" "), *(each.decode().rstrip("=") for each in encoded)]
    parts = [key[:8].hex(), key[-8:].hex(), str(int.from_bytes(key, "big")), str(list(key))[1:-1]]
    return [*whole, *parts, repr(key)[2:-1], repr(key[:8])[2:-1]]


def shows(text, key=KEY):
    """Return whether a text holds a key in any form."""
    return any(form.lower() in text.lower() for form in forms_of(key))


def told(error):
    """Return everything that a report of an error may hold: texts, causes and contexts."""
    return "".join([*traceback.format_exception(error), repr(error), repr(vars(error))])
