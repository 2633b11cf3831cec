"""The format of a sealed field, written down byte by byte, and its associated data."""

import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from mnemic.crypto.envelope import OVERHEAD, joined, key_id_of
from tests.support.keys import AGENT, ENTRY, KEY, SALT, fixed_nonces, sealer

FIXED = {  # of key 00…1f, salt 64…83, agent "agent", entry 00…0f and the first nonce
    ("entry", "", b"The ferry leaves at ten."): (
        "012eb07bf3e9760dd7000000000000000000000000f6fc8413b7ab96d3cc0e36ab46f89a94c2bf46"
        "8758a157b9369aa1af08b1b4e2015433df630410b9"
    ),
    (
        "entry",
        "",
        b"",
    ): "012eb07bf3e9760dd700000000000000000000000090df9d4b9878ff2fee19c463fa75fea6",
    ("embedding", "minilm", bytes(8)): (
        "012eb07bf3e9760dd7000000000000000000000000a294e133d1cee4a1f63f4d348fc022da6a0c1a93345945db"
    ),
    (
        "größe",
        "模型",
        b"x",
    ): "012eb07bf3e9760dd7000000000000000000000000daefa1e5e336473af5b077d2e506ed336d",
}
FIXED_KEY_ID = "2eb07bf3e9760dd7"
FIXED_FINGERPRINT = "27239363c39691ac66c7ccef6a5f7fba"
FIXED_KEYED = "2de98199ff623979a66312128b7b16e0"
FIXED_CHECK = (
    "012eb07bf3e9760dd7000000000000000000000000cffa845eb8ad15a279451212c7f630d7f2d26bc7470d"
)


def fields(*values):
    """Return the twin of `joined`."""
    return b"".join(len(value).to_bytes(4, "big") + value for value in values)


def derived(salt, *info, length=32):
    """Return the twin of the derivation: one block of HKDF by HMAC alone."""
    extracted = hmac.digest(salt or bytes(32), KEY, "sha256")
    return hmac.digest(extracted, fields(*info) + b"\1", "sha256")[:length]


def twin(plain, field, model, nonce):
    """Return a sealed field by the description of the format alone."""
    key_id = derived(b"", b"agent-memory", b"key id", length=8)
    key = derived(SALT, b"agent-memory", b"seal", AGENT.encode(), key_id)
    data = fields(b"\1", key_id, AGENT.encode(), ENTRY, field.encode(), model.encode())
    return b"\1" + key_id + nonce + AESGCM(key).encrypt(nonce, plain, data)


@pytest.mark.parametrize(("field", "model", "plain"), FIXED)
def test_the_format_never_changes(field, model, plain):
    sealed = sealer(nonces=fixed_nonces).seal(plain, ENTRY, field, model)
    assert sealed.hex() == FIXED[field, model, plain]
    assert sealer().open(bytes.fromhex(FIXED[field, model, plain]), ENTRY, field, model) == plain


def test_the_ids_and_hashes_never_change():
    one = sealer(nonces=fixed_nonces)
    assert one.key_id.hex() == one.key_name == FIXED_KEY_ID
    assert one.fingerprints(["The ferry leaves at ten."])[0].hex() == FIXED_FINGERPRINT
    assert one.keyed("order 17").hex() == FIXED_KEYED
    assert one.check_value().hex() == FIXED_CHECK
    sealer().verify_check(bytes.fromhex(FIXED_CHECK))


@given(st.binary(max_size=200), st.text(max_size=20), st.text(max_size=20))
def test_the_format_is_that_of_its_description(plain, field, model):
    nonce = hashlib.sha256(plain).digest()[:12]
    one = sealer(nonces=lambda _: [nonce])
    assert one.seal(plain, ENTRY, field, model) == twin(plain, field, model, nonce)


def test_a_sealed_field_is_so_much_longer():
    assert len(sealer().seal(bytes(300), ENTRY, "entry")) == 300 + OVERHEAD == 337


@pytest.mark.requirement("C179")
@given(st.lists(st.binary(max_size=9), max_size=5), st.lists(st.binary(max_size=9), max_size=5))
def test_different_fields_are_different_bytes(one, other):
    assert (joined(*one) == joined(*other)) == (one == other)


@pytest.mark.requirement("C179")
def test_the_end_of_one_field_is_not_the_beginning_of_the_next():
    assert joined(b"ab", b"c") != joined(b"a", b"bc") != joined(b"abc") != joined(b"abc", b"")


def test_the_id_of_the_key_is_read_without_opening():
    one = sealer()
    sealed = one.seal(b"plain", ENTRY, "entry")
    assert key_id_of(sealed) == one.key_id
    for other in (b"", sealed[:36], b"\2" + sealed[1:], "text", None, bytearray(sealed)):
        assert key_id_of(other) is None
