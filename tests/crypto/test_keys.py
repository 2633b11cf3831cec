"""Master keys and providers: what is refused, what surfaces, and that no key ever shows."""

import copy
import pickle

import msgspec
import pytest

from mnemic import Encryption, MasterKey
from mnemic.errors import InvalidArgumentError, KeyUnavailableError, MnemicError
from tests.support.keys import KEY, OTHER_KEY, forms_of, shows, told


class Provider:
    """Has an old key and a new one, as a key management service does."""

    def __init__(self):
        self.keys = {"2025": OTHER_KEY, "2026": KEY}
        self.asked = []

    def key(self, name):
        self.asked.append(name)
        name = name or "2026"
        return MasterKey(self.keys[name], name)


def provider_of(returned):
    class Returning:
        def key(self, _):
            return returned

    return Returning()


def provider_that_raises(error):
    class Raising:
        def key(self, _):
            raise error

    return Raising()


def test_one_key_has_one_id_everywhere():
    one, again, other = MasterKey(KEY), MasterKey(bytes(KEY), "named"), MasterKey(OTHER_KEY)
    assert one.key_id == again.key_id != other.key_id
    assert len(one.key_id) == 8
    assert (one.name, again.name) == (one.key_id.hex(), "named")


@pytest.mark.parametrize(
    "key",
    [KEY[:31], KEY + b"\0", b"", KEY.hex(), "", None, 7, bytearray(KEY), memoryview(KEY), [*KEY]],
)
@pytest.mark.parametrize("use", [MasterKey, Encryption])
def test_what_is_no_key_is_refused_and_not_shown(use, key):
    with pytest.raises(InvalidArgumentError, match=r"secrets\.token_bytes\(32\)") as caught:
        use(key)
    assert "32 random bytes" in str(caught.value)
    assert not shows(told(caught.value))


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 501, 7, b"name"])
def test_names_are_printable_and_short(name):
    with pytest.raises(InvalidArgumentError, match="name must be a printable text"):
        MasterKey(KEY, name)
    assert MasterKey(KEY, "x" * 500).name == "x" * 500


def test_a_key_is_neither_shown_nor_written_nor_copied():
    key = MasterKey(KEY, "2026")
    assert repr(key) == str(key) == f"{key}" == "MasterKey(name='2026')"
    assert not hasattr(key, "__dict__")
    with pytest.raises(AttributeError):
        key.name = "2027"
    for refuse in (pickle.dumps, copy.copy, copy.deepcopy, msgspec.json.encode):
        with pytest.raises(TypeError) as caught:
            refuse(key)
        assert not shows(told(caught.value))


def test_the_search_for_a_key_finds_it():
    assert all(shows(f"…{form}…") for form in forms_of(KEY))
    assert not shows(repr(MasterKey(KEY)))


def test_a_provider_is_asked_for_the_current_key_and_for_older_ones():
    provider = Provider()
    encryption = Encryption(provider)
    assert provider.asked == []
    assert encryption.master_key().key_id == MasterKey(KEY).key_id
    older = MasterKey(OTHER_KEY)
    assert encryption.known_key(older.key_id, "2025").key_id == older.key_id
    assert encryption.known_key(bytes(8), "2025") is None
    assert provider.asked == [None, "2025", "2025"]


def test_given_keys_are_found_by_their_ids_and_no_others():
    key, older = MasterKey(KEY), MasterKey(OTHER_KEY, "2025")
    encryption = Encryption(key, previous=[older])
    assert encryption.master_key() is encryption.known_key(key.key_id, "any") is key
    assert encryption.known_key(older.key_id, "any") is older
    assert encryption.known_key(bytes(8), key.name) is None
    assert Encryption(KEY).known_key(older.key_id, "2025") is None


def test_a_rotated_key_leaves_the_former_ones_to_open_older_memories():
    key, older, newer = MasterKey(KEY), MasterKey(OTHER_KEY), bytes(32)
    rotated = Encryption(key, previous=[older], encrypt_all=True).rotated_to(newer)
    assert rotated.encrypt_all
    assert rotated.master_key().key_id == MasterKey(newer).key_id
    for former in (key, older):
        assert rotated.known_key(former.key_id, "any") is former


def test_former_keys_are_a_list_of_keys():
    for wrong in (KEY, "key", None, 7):
        with pytest.raises(InvalidArgumentError, match="previous must be a list of keys"):
            Encryption(KEY, previous=wrong)
    with pytest.raises(InvalidArgumentError, match="32 random bytes or a MasterKey, got 2 bytes"):
        Encryption(KEY, previous=[b"ab"])


@pytest.mark.parametrize("form", forms_of(KEY))
def test_an_error_of_a_provider_is_neither_quoted_nor_chained(form):
    encryption = Encryption(provider_that_raises(ConnectionError(f"cannot read {form}")))
    for ask in (encryption.master_key, lambda: encryption.known_key(bytes(8), "2025")):
        with pytest.raises(KeyUnavailableError, match="ConnectionError at test_keys") as caught:
            ask()
        assert not shows(told(caught.value))
        assert caught.value.kind.startswith("ConnectionError at ")
        assert caught.value.__context__ is None


def test_an_unknown_name_surfaces_as_an_unavailable_key():
    with pytest.raises(KeyUnavailableError, match="failed to return key '2020': KeyError"):
        Encryption(Provider()).known_key(bytes(8), "2020")


def test_errors_of_mnemic_surface_unchanged():
    for error in (KeyUnavailableError("the vault is locked"), InvalidArgumentError("no")):
        with pytest.raises(MnemicError) as caught:
            Encryption(provider_that_raises(error)).master_key()
        assert caught.value is error
    with pytest.raises(InvalidArgumentError, match="32 random bytes"):
        Encryption(Short()).master_key()


class Short:
    def key(self, name):
        return MasterKey(KEY[:16], name)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_an_interrupt_passes_through(error):
    with pytest.raises(type(error)):
        Encryption(provider_that_raises(error)).master_key()


@pytest.mark.parametrize("returned", [None, KEY, KEY[:3], KEY.hex(), bytearray(KEY), (KEY, "a"), 7])
def test_what_a_provider_returns_must_be_a_master_key(returned):
    with pytest.raises(KeyUnavailableError, match="not a MasterKey") as caught:
        Encryption(provider_of(returned)).master_key()
    assert not shows(told(caught.value))


def test_a_provider_must_return_the_key_that_was_asked_for():
    encryption = Encryption(provider_of(MasterKey(KEY, "2026")))
    key = MasterKey(KEY)
    assert encryption.known_key(key.key_id, "2026").name == encryption.master_key().name == "2026"
    with pytest.raises(
        KeyUnavailableError, match="key '2025': the key provider returned key '2026'"
    ):
        encryption.known_key(key.key_id, "2025")
