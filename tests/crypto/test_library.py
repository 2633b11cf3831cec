"""Published vectors of the primitives, through the calls that sealing uses."""

import subprocess
import sys

import pytest

from mnemic.crypto import Encryption, MasterKey
from mnemic.errors import MissingExtraError
from tests.support.keys import KEY


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
