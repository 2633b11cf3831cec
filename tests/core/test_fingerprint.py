"""Fingerprints from Python: against `unicodedata` and `hashlib`, in batches, on bad input."""

# ruff: noqa: RUF001 - texts in many scripts are the point

import hashlib
import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemic._core import FINGERPRINT_VERSION
from mnemic.errors import InvalidArgumentError
from mnemic.model import fingerprint, fingerprint_digests
from tests.support.tiers import examples

WHITESPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000"
)
SENTENCE_PUNCTUATION = ".,;:!?…¡¿⸘‽、。،؛؟۔।॥։፡።၊။។៕᠂᠃"
BRACKETS_AND_QUOTES = "\"'" + "".join(
    character
    for character in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(character) in ("Ps", "Pe", "Pi", "Pf")
)
BOUNDARY = WHITESPACE + SENTENCE_PUNCTUATION + BRACKETS_AND_QUOTES
OTHER_PUNCTUATION_KEPT = "#%&*/@\\·•†‡′"


WORDS = "ªº™℠🅪🅫🅬"  # raised too, but letters of words


def nfkc(text):
    return unicodedata.normalize("NFKC", text)


def is_raised(character):
    tag = unicodedata.decomposition(character).partition(" ")[0]
    return tag in ("<super>", "<sub>") and character not in WORDS


def unit_of(character):
    """Return the parts of a unit in one character if one of them is raised."""
    tag, *parts = unicodedata.decomposition(character).split() or [""]
    parts = "".join(chr(int(part, 16)) for part in parts if tag == "<square>")
    return parts if any(map(is_raised, parts)) else ""


def becomes_part_of_a_number(before, character, behind):
    """Return whether NFKC would put a digit of a character beside another digit."""
    form = nfkc(character)
    if unicodedata.category(character) == "Nd" or not re.search("[0-9]", form):
        return False
    joins_before = nfkc(before)[-1:].isnumeric() and form[0].isnumeric()
    return joins_before or (form[-1].isnumeric() and nfkc(behind)[:1].isnumeric())


def twin_fold(text):
    parts = [""]
    for before, character, behind in zip(["", *text], text, [*text[1:], ""], strict=False):
        if kept := unit_of(character):
            parts += kept, ""
        elif is_raised(character) or becomes_part_of_a_number(before, character, behind):
            parts += character, ""
        else:
            parts[-1] += character
    return "".join(
        part if place % 2 else nfkc(nfkc(part).casefold()) for place, part in enumerate(parts)
    )


def twin_normal_form(text):
    folded = twin_fold(text)
    collapsed = re.sub(f"[{WHITESPACE}]+", " ", folded).strip(" ")
    return collapsed.strip(BOUNDARY) or collapsed


def twin_digest(text):
    return hashlib.sha256(twin_normal_form(text).encode()).digest()


# Unassigned characters may be assigned in the newer Unicode of the extension. Quotes without a
# bracket category and punctuation of scripts not listed above are not in the twin's set.
characters = st.one_of(
    st.characters(
        exclude_categories=["Cs", "Cn", "Co", "Po"],
        exclude_characters="❛❜❝❞❟❠",
    ),
    st.sampled_from(WHITESPACE + SENTENCE_PUNCTUATION + OTHER_PUNCTUATION_KEPT),
    st.sampled_from(
        "0123²³⁵₂⁻⁾ⁿᵏₐª½¼①⑪⑴⒈㉑㋀㏠㎡㍸０१"
        "ßẞİıŉǰΐςᾳſ℃™№´¨ﬁｱﾞǅᏸ한ᄀ\u1161\u11a8\u3099\u0345\u0301\u0323क\u094d\u093c\ufe0f\u200d"
    ),
)
texts = st.one_of(st.text(characters), st.text(st.characters(codec="ascii")))


def assigned(text):
    return all(unicodedata.category(character) != "Cn" for character in text)


@examples(1500)
@given(texts)
@example("α\u0345\u0301")
@example("")
def test_fingerprints_are_those_of_unicodedata_and_hashlib(text):
    assert assigned(text)
    digest = twin_digest(text)
    assert fingerprint_digests([text]) == [digest]
    assert fingerprint(text) == digest.hex()[:16]


def test_every_character_alone_has_the_fingerprint_of_unicodedata_and_hashlib():
    alone = [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character) not in ("Cs", "Cn", "Co", "Po")
    ]
    between = [f"{start}{one}{end}" for one in alone for start, end in ("xy", "1y", "x2", "1²")]
    assert fingerprint_digests(alone) == [twin_digest(text) for text in alone]
    assert fingerprint_digests(between) == [twin_digest(text) for text in between]


def test_any_iterable_of_str_is_a_batch():
    expected = fingerprint_digests(["a", "b"])
    assert fingerprint_digests(("a", "b")) == expected
    assert fingerprint_digests(text for text in "ab") == expected
    assert fingerprint_digests({"a": 1, "b": 2}) == expected
    assert fingerprint_digests([]) == []


def test_one_str_is_not_a_batch():
    with pytest.raises(TypeError, match="not one str"):
        fingerprint_digests("ab")


@pytest.mark.parametrize("wrong", [None, 5, b"text", ["text"]])
def test_what_is_not_a_str_is_a_type_error(wrong):
    with pytest.raises(TypeError, match="text"):
        fingerprint(wrong)
    with pytest.raises(TypeError, match=rf"texts\[1\] must be str, not {type(wrong).__name__}"):
        fingerprint_digests(["fine", wrong])


def test_what_cannot_be_iterated_is_a_type_error():
    with pytest.raises(TypeError, match="not iterable"):
        fingerprint_digests(5)


def test_errors_of_the_iterable_pass_through():
    with pytest.raises(ZeroDivisionError):
        fingerprint_digests(str(1 / number) for number in (1, 0))


def test_a_lone_surrogate_is_an_error_that_names_its_place():
    with pytest.raises(InvalidArgumentError, match="text has a lone surrogate at position 2"):
        fingerprint("ab\ud800")
    with pytest.raises(
        InvalidArgumentError, match=r"texts\[1\] has a lone surrogate at position 0"
    ) as caught:
        fingerprint_digests(["fine", "\udfff!"])
    assert isinstance(caught.value.__cause__, UnicodeEncodeError)


def test_the_version_of_the_normal_form_is_exposed():
    assert FINGERPRINT_VERSION == 2
