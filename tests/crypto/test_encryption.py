"""Options of encryption: which texts are sealed, and that the options show no key."""

import copy
import pickle

import msgspec
import pytest

from mnemic import Encryption
from mnemic.errors import DetectorError, InvalidArgumentError
from mnemic.policy import KNOWN_PATTERNS
from tests.support.keys import KEY, OTHER_KEY, shows, told

PERSONAL = {
    "ssn": "Her number is 123-45-6789.",
    "card": "Pay with 4111 1111 1111 1111.",
    "email": "Write to john@example.com.",
    "phone": "Call +44 20 7946 0958.",
    "iban": "To DE89370400440532013000, please.",
    "ipv4": "It runs on 192.168.0.1.",
    "ipv6": "It runs on 2001:db8::1.",
    "api_key": "The token is ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5.",
}
HARMLESS = ["", "The ferry leaves at ten past every hour.", "Order 17 of 4 May 2023 cost 12.50."]


def test_nothing_is_sealed_by_default_but_what_the_caller_marks():
    encryption = Encryption(KEY)
    assert not encryption.encrypt_all
    assert not any(map(encryption.is_sensitive, [*PERSONAL.values(), *HARMLESS]))


@pytest.mark.requirement("C144")
def test_everything_is_sealed_on_request_without_a_look_at_it():
    encryption = Encryption(KEY, encrypt_all=True, detect=lambda _: 1 / 0)
    assert encryption.encrypt_all
    assert all(map(encryption.is_sensitive, HARMLESS))


@pytest.mark.requirement("C088")
def test_personal_data_and_secrets_are_found_by_the_known_patterns():
    encryption = Encryption(KEY, detect="pii")
    assert set(PERSONAL) == set(KNOWN_PATTERNS)
    assert all(map(encryption.is_sensitive, PERSONAL.values()))
    assert not any(map(encryption.is_sensitive, HARMLESS))


@pytest.mark.requirement("C088")
def test_a_detector_of_ones_own_decides():
    encryption = Encryption(KEY, detect=lambda text: "secret" in text)
    assert encryption.is_sensitive("a secret")
    assert not encryption.is_sensitive(PERSONAL["email"])


def test_an_error_of_a_detector_is_neither_quoted_nor_chained():
    def detect(text):
        raise LookupError(f"no model for {text}")

    with pytest.raises(DetectorError, match="LookupError at test_encryption") as caught:
        Encryption(KEY, detect=detect).is_sensitive(PERSONAL["email"])
    assert "john" not in told(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.kind.startswith("LookupError at ")


@pytest.mark.parametrize("answer", [None, 1, PERSONAL["email"], [], 0.5])
def test_a_detector_answers_with_a_bool(answer):
    with pytest.raises(DetectorError, match="not a bool") as caught:
        Encryption(KEY, detect=lambda _: answer).is_sensitive("text")
    assert "john" not in told(caught.value)


@pytest.mark.parametrize("options", [{"detect": "PII"}, {"detect": 7}, {"encrypt_all": 1}])
def test_invalid_options_are_refused(options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options))) as caught:
        Encryption(KEY, **options)
    assert not shows(told(caught.value))


def test_the_options_never_change():
    encryption = Encryption(KEY)
    with pytest.raises(AttributeError):
        encryption.encrypt_all = True
    with pytest.raises(AttributeError):
        encryption.further = True


class Provider:
    secret = OTHER_KEY

    def __repr__(self):
        return f"Provider({self.secret.hex()})"

    def key(self, name):
        raise AssertionError(name)


@pytest.mark.parametrize("key", [KEY, Provider()], ids=["key", "provider"])
def test_the_options_show_no_key_and_are_neither_pickled_nor_copied(key):
    encryption = Encryption(key, detect="pii")
    shown = f"{encryption!r} {encryption!s} {encryption}"
    assert not hasattr(encryption, "__dict__")
    assert shown.count("encrypt_all=False") == 3
    assert not shows(shown, KEY)
    assert not shows(shown, OTHER_KEY)
    for refuse in (pickle.dumps, copy.copy, copy.deepcopy, msgspec.json.encode):
        with pytest.raises(TypeError) as caught:
            refuse(encryption)
        assert not shows(told(caught.value), KEY)
        assert not shows(told(caught.value), OTHER_KEY)


def test_the_detector_is_asked_about_each_text_until_one_is_sensitive():
    asked = []

    def detect(text):
        asked.append(text)
        return text == "b"

    assert Encryption(bytes(32), detect=detect).detects(["a", "b", "c"])
    assert asked == ["a", "b"]
    assert not Encryption(bytes(32), encrypt_all=True).detects(["a"])
