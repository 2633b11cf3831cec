"""Published vectors of the primitives, through the calls that sealing uses."""

import subprocess
import sys

import pytest

from mnemic.crypto import Encryption, MasterKey
from mnemic.crypto.keys import aes_gcm, hkdf, invalid_tag
from mnemic.errors import MissingExtraError
from tests.support.keys import KEY

DERIVED = {  # RFC 5869, appendix A: keying material, salt, info, derived key
    "A.1": (
        "0b" * 22,
        "000102030405060708090a0b0c",
        "f0f1f2f3f4f5f6f7f8f9",
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    "A.2": (
        bytes(range(0x50)).hex(),
        bytes(range(0x60, 0xB0)).hex(),
        bytes(range(0xB0, 0x100)).hex(),
        (
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
            "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
            "cc30c58179ec3e87c14c01d5c1f3434f1d87"
        ),
    ),
    "A.3": (
        "0b" * 22,
        "",
        "",
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    ),
}

_KEY = "feffe9928665731c6d6a8f9467308308" * 2
_PLAIN = (
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255"
)
_SEALED = (
    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
    "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad"
)
SEALED = {  # McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B; NIST's CAVP
    "13": ("00" * 32, "00" * 12, "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"),
    "14": (
        "00" * 32,
        "00" * 12,
        "",
        "00" * 16,
        "cea7403d4d606b6e074ec5d3baf39d18",
        "d0d1c8a799996bf0265b98b5d48ab919",
    ),
    "15": (
        _KEY,
        "cafebabefacedbaddecaf888",
        "",
        _PLAIN,
        _SEALED,
        "b094dac5d93471bdec1a502270e3cc6c",
    ),
    "16": (
        _KEY,
        "cafebabefacedbaddecaf888",
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        _PLAIN[:120],
        _SEALED[:120],
        "76fc6ece0f4e1768cddf8853bb2d551b",
    ),
    "CAVP": (
        "83688deb4af8007f9b713b47cfa6c73e35ea7a3aa4ecdb414dded03bf7a0fd3a",
        "0b459724904e010a46901cf3",
        "794a14ccd178c8ebfd1379dc704c5e208f9d8424",
        "33d893a2114ce06fc15d55e454cf90c3",
        "cc66bee423e3fcd4c0865715e9586696",
        "0fb291bd3dba94a1dfd8b286cfb97ac5",
    ),
}


@pytest.mark.parametrize("case", DERIVED)
def test_keys_are_derived_as_the_standard_says(case):
    secret, salt, info, derived = map(bytes.fromhex, DERIVED[case])
    assert hkdf(secret, salt=salt, info=info, length=len(derived)) == derived


@pytest.mark.parametrize("case", SEALED)
def test_texts_are_sealed_and_opened_as_the_standard_says(case):
    key, nonce, data, plain, sealed, tag = map(bytes.fromhex, SEALED[case])
    cipher = aes_gcm(key)
    assert cipher.encrypt(nonce, plain, data) == sealed + tag
    assert cipher.decrypt(nonce, sealed + tag, data) == plain
    with pytest.raises(invalid_tag()):
        cipher.decrypt(nonce, sealed + tag, data + b"\0")


@pytest.mark.parametrize("use", [MasterKey, Encryption])
def test_without_the_library_the_error_names_the_extra(use, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'mnemic\[crypto\]'"):
        use(KEY)


def test_a_provider_is_refused_without_the_library_too(monkeypatch):
    class Provider:
        def key(self, name):
            raise AssertionError(name)

    name = "cryptography.hazmat.primitives.ciphers.aead"
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match="crypto"):
        Encryption(Provider())


def test_importing_the_module_loads_no_library():
    code = (
        "import sys, mnemic.crypto, mnemic.annotations\n"
        "from mnemic import Encryption, MasterKey, Memory\n"
        "Memory(':memory:', embedder=None).add('x', sensitive=True)\n"
        "assert not [name for name in sys.modules if name.startswith('cryptography')]\n"
        "Encryption(bytes(range(32)))\n"
        "assert 'cryptography' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
