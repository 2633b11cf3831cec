"""Secrets that are broken into lines, emphasised, spaced out or quoted are found as plain ones."""

# ruff: noqa: RUF001 - characters that look like others are the point

import base64
import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import Memory
from mnemic.context.redaction import Redaction, redact
from mnemic.policy import RetrievalConfig, RetrievalPolicy
from tests.support.policy import request
from tests.support.tiers import examples

DEFAULT = Redaction(enabled=True)
ALL = Redaction(enabled=True, patterns=("ssn", "card", "email", "phone", "iban", "api_key"))
SECRETS = [
    "078-05-1120",
    "4111 1111 1111 1111",
    "4111111111111111",
    "3782-822463-10005",
    "GB82 WEST 1234 5698 7654 32",
    "DE89370400440532013000",
    "zed@example.org",
    "+44 20 7946 0958",
    "212-555-0199",
    "sk-proj-aB3dE5fG7hI9jK1lM3nO5pQ7",
]
EMPHASES = ["_{}_", "__{}__", "*{}*", "**{}**", "***{}***", "`{}`", "``{}``", "~~{}~~", "**_{}_**"]
BREAKS = ["\n", "\r\n", "\n\n", "\u2028", "\x0b", "\x85", " \n\t", "\n> ", "\n> > ", "\n        "]
SPACES = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
SPACES = [space for space in SPACES if space not in "\x1c\x1d\x1e\x1f"]  # which are no White_Space


def broken(secret):
    """Return a secret with a line break at each place where one hides nothing of it."""
    first = secret.find("@") if "@" in secret else 1
    for at, line_break in itertools.product(range(first, len(secret)), BREAKS):
        yield secret[:at] + line_break + secret[at:]


def prompts(texts, redaction):
    """Return the prompt of a policy for each text, of one user each."""
    config = RetrievalConfig(search_type="keyword", min_score=0, redaction=redaction)
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many(
            {"content": f"harbour {text} now", "user_id": f"u{at}"} for at, text in enumerate(texts)
        )
        policy = RetrievalPolicy(memory, config)
        for at, _ in enumerate(texts):
            yield policy.run(request("harbour", user_id=f"u{at}")).prompt


@pytest.mark.requirement("R296", "C045", "C046")
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("emphasis", EMPHASES)
def test_emphasis_around_a_secret_hides_nothing(secret, emphasis):
    left = redact(f"It is {emphasis.format(secret)} now", ALL)
    assert "[REDACTED]" in left
    assert left.translate({ord(mark): None for mark in "_*`~"}) == "It is [REDACTED] now"
    assert redact(f"{emphasis.format('It is ' + secret)} now", ALL).count("[REDACTED]") == 1


@pytest.mark.requirement("R296", "C045", "C046")
@pytest.mark.parametrize(
    "secret", [secret for secret in SECRETS if not secret.startswith(("sk-", "+", "212"))]
)
def test_a_line_break_in_a_secret_hides_nothing(secret):
    for text in broken(secret):
        left = redact(f"It is {text} now", ALL)
        assert left.startswith("It is [REDACTED]"), text
        assert sum(letter.isalnum() for letter in left) <= len("ItisREDACTEDnow") + 2, text


@pytest.mark.requirement("R296", "C045")
@pytest.mark.parametrize(
    "text", ["212-\n555-0199", "+44 20\n7946 0958", "(212)\n555-0199", "212-555\n-0199"]
)
def test_a_line_break_in_a_telephone_number_that_shows_itself_hides_nothing(text):
    assert redact(f"It is {text} now", ALL) == "It is [REDACTED] now"


@pytest.mark.requirement("R296", "C046")
@pytest.mark.parametrize("space", SPACES)
def test_any_white_space_stands_between_the_groups_of_a_card_or_an_iban(space):
    for secret in ["4111 1111 1111 1111", "GB82 WEST 1234 5698 7654 32"]:
        assert redact(f"It is {secret.replace(' ', space)} now", ALL) == "It is [REDACTED] now"


@pytest.mark.requirement("R296")
@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 **1111**",
        "**4111** 1111 1111 1111",
        "`4111` `1111` `1111` `1111`",
        "411111111111**1111**",
        "078-05-**1120**",
        "**078**-05-1120",
        "DE89 3704 0044 0532 0130 **00**",
        "**zed**@example.org",
        "zed@**example**.org",
        "`zed`@`example.org`",
    ],
)
def test_emphasis_in_a_secret_hides_nothing(text):
    left = redact(f"It is {text} now", ALL)
    assert left.translate({ord(mark): None for mark in "*`"}) == "It is [REDACTED] now"


@pytest.mark.requirement("R296", "C045")
@pytest.mark.parametrize(
    "hider",
    [*"\u2800\u200b\u00ad\u0336\U0001d173\U0001bca0\U000e0041", "\ufe0f\u20e3"],
)
@pytest.mark.parametrize("secret", SECRETS)
def test_characters_without_a_picture_hide_nothing(secret, hider):
    assert redact(f"It is {hider.join(secret)} now", ALL) == "It is [REDACTED] now"


@pytest.mark.requirement("R296")
@pytest.mark.parametrize(
    "text",
    [
        "𝟎𝟕𝟖-𝟎𝟓-𝟏𝟏𝟐𝟎",
        "𝟜𝟙𝟙𝟙 𝟙𝟙𝟙𝟙 𝟙𝟙𝟙𝟙 𝟙𝟙𝟙𝟙",
        "④①①① ①①①① ①①①① ①①①①",
        "🯴🯱🯱🯱 🯱🯱🯱🯱 🯱🯱🯱🯱 🯱🯱🯱🯱",
        "zed﹫example.org",
        "zed@example。org",
        "zed@example｡org",
        "zed@example﹒org",
        "𝓏𝑒𝒹@𝐞𝐱𝐚𝐦𝐩𝐥𝐞.𝐨𝐫𝐠",
        "ＧＢ82ＷＥＳＴ12345698765432",
    ],
)
def test_variants_of_characters_hide_nothing(text):
    assert redact(f"It is {text} now", ALL) == "It is [REDACTED] now"


@pytest.mark.requirement("R296", "C045")
def test_a_prompt_shows_no_more_than_the_redacted_text():
    secrets = ["078-05-1120", "4111 1111 1111 1111", "zed@example.org"]
    texts = [emphasis.format(secret) for secret in secrets for emphasis in EMPHASES]
    texts += [text for secret in secrets for text in itertools.islice(broken(secret), 0, None, 7)]
    texts += ["4111\u20071111\u20071111\u20071111", "zed﹫example.org"]
    for text, prompt in zip(texts, prompts(texts, DEFAULT), strict=True):
        assert "[REDACTED]" in redact(text, DEFAULT), text
        assert "[REDACTED]" in prompt, text
        assert not any(part in prompt for part in ("1120", "1111", "example")), text


@pytest.mark.requirement("R296", "C045")
def test_an_own_pattern_is_found_over_lines_by_redact_and_in_a_prompt():
    own = Redaction(enabled=True, patterns=(r"\bMRN \d+ \d+\b",))
    texts = ["MRN 12 34", "MRN\n12 34", "MRN\t12\r\n34", "MRN  12\u20283\u200b4"]
    for text, prompt in zip(texts, prompts(texts, own), strict=True):
        assert redact(f"a {text} b", own) == "a [REDACTED] b"
        assert "[REDACTED]" in prompt


@pytest.mark.requirement("C046")
@pytest.mark.parametrize(
    "text",
    [
        "On 2023-10-\n11 we met",
        "from 2023-10-11\n2023-10-12 on",
        "at 12:30\n2024",
        "01.02.2023\n10:30",
        "prices 12.50\n30.99\n8.00",
        "€ 1,299.00\n€ 1,499.00",
        "version 1.2.3.\n4 items",
        "v2.10.3345\n2.11.0",
        "100 200\n3000",
        "12\n15\n18\n22\n25\n30\n35",
        "1\n2\n3\n4\n5\n6\n7\n8\n9",
        "page 123\n45-6789",
        "Thanks\n@jane.doe for it",
        "import Flask\n@app.route('/')",
        "see @media\nscreen.and more",
        "Write to him.\nIn short",
        "john@localhost\nis up",
        "zed@work.\nThen he left",
        "pkg@1.2.3\nrun it",
        "file_123-45-6789_x",
        "4111_1111_1111_1111",
        "2**10 and 1024**2",
    ],
)
def test_lines_are_not_joined_where_they_are_apart(text):
    assert redact(text, ALL) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Mail zed@example.org\nThanks", "Mail #\nThanks"),
        ("Mail zed@example.org.\nIn short", "Mail #.\nIn short"),
        ("Dear Zed\nzed@example.org", "Dear Zed\n#"),
        ("4111 1111 1111 1111\n11 apples", "#\n11 apples"),
        ("Tel. +44 20 7946 0958\n12 people", "Tel. #\n12 people"),
        ("john@example.com。谢谢", "#。谢谢"),
    ],
)
def test_a_match_ends_with_its_line(text, left):
    assert redact(text, Redaction(enabled=True, patterns=ALL.patterns, replacement="#")) == left


BODY = base64.b64encode(bytes(range(256)) * 3).decode()
LABELS = ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]
FORMS = [
    *("{}\n", "{}\r\n", "    {}\n", "\t{}\n", "{} ", "{}\\n", "{}\\r\\n", "{}\\\\n", "{}\\\\\\\\n"),
    *("> {}\n", "> > {}\n", ">{}\n", "# {}\n", "## {}\n", "// {}\n", "/// {}\n", " * {}\n"),
    *("; {}\n", "-- {}\n", "% {}\n", "REM {}\n", "dnl {}\n", "| {} |\n", "- {}\n", "* {}\n"),
    *("+{}\n", "-{}\n", "+ {}\n", " 12: {}\n", "12\t{}\n", "<p>{}</p>\n", "{}<br>", "{}<br />\n"),
    *("<li><code>{}</code></li>", '"{}",\n', '"{}\\n" +\n', '"{}\\n"\n', "'{}' .\n", "'{}\\n', "),
    *('key += "{}\\n";\n', 'System.out.println("{}");\n', 'echo "{}" >> key.pem\n', "b'{}'\n"),
    *('<td class="blob-num" id="L12"></td><td class="blob-code js-file-line">{}</td>\n', "{}&#10;"),
    *("2026-11-28T12:00:00Z host app[12]: {}\n", "**{}**\n", "`{}`\n", "_{}_\n", "{}\u2028"),
]


def lines(label, width=64):
    body = [BODY[at : at + width] for at in range(0, len(BODY), width)]
    return [f"-----BEGIN {label}-----", *body, f"-----END {label}-----"]


@pytest.mark.requirement("R296")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("label", LABELS)
def test_a_private_key_is_redacted_whole_whatever_stands_around_its_lines(form, label):
    key = lines(label)
    left = redact("It is " + "".join(map(form.format, key)) + "END", ALL)
    assert left.count("[REDACTED]") == 1
    assert not any(line in left for line in key)
    assert left.endswith("END")


@pytest.mark.requirement("R296")
@pytest.mark.parametrize("form", FORMS)
def test_a_private_key_that_was_cut_off_is_redacted_as_far_as_it_goes(form):
    key = lines("RSA PRIVATE KEY")[:5]
    left = redact("".join(map(form.format, key)) + "\nand more of the text", ALL)
    assert not any(line in left for line in key)
    assert left.endswith("and more of the text")


@pytest.mark.requirement("R296")
@pytest.mark.parametrize("width", [8, 16, 20, 48, 76, 2000])
def test_a_private_key_in_lines_of_any_length_is_redacted_whole(width):
    key = lines("EC PRIVATE KEY", width)
    headers = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,4F2A9C0D1B3E5A7788990011", ""]
    for text in [key, [key[0], *headers, *key[1:]]]:
        assert redact("\n".join(f"> {line}" for line in text), ALL) == "> [REDACTED]"


@pytest.mark.requirement("C046")
@pytest.mark.parametrize(
    "text",
    [
        "A file that begins with BEGIN RSA PRIVATE KEY is a key.",
        "It begins with -----BEGIN RSA PRIVATE KEY----- and is secret.",
        "between -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY----- stands Base64",
        "found -----BEGIN RSA PRIVATE KEY----- in 3f2a9c0d1b3e5a7788990011aabbccdd00112233",
        "-----BEGIN RSA PRIVATE KEY-----\nsee https://github.com/Foo/Bar2/blob/main/README.md",
        "-----BEGIN PRIVATE KEY-----\nthe internationalisation of characteristically long words",
        "-----BEGIN CERTIFICATE-----\n" + BODY[:64] + "\n-----END CERTIFICATE-----",
    ],
)
def test_a_mention_of_a_private_key_stays(text):
    assert redact(text, ALL) == text


pieces = st.sampled_from([*SECRETS, *BREAKS, *"_*`~ .-@>1xé中𝟏\u200b", "**", "12"])


@examples(300)
@given(st.lists(pieces, max_size=8).map("".join))
def test_a_second_redaction_of_what_was_redacted_finds_nothing(text):
    once = redact(text, ALL)
    assert redact(once, ALL) == once


def test_time_is_linear_in_texts_that_are_made_of_parts():
    parts = ["1\n", "12\n>", "_", "1_", "@\n", "a@\n", "a@b\n", "1 \t", "078-\n", "GB\n", "+1\n"]
    for part in [*parts, "4111 **", f"4111{' ' * 9999}", f"@{' ' * 9999}", f"1-{chr(10) * 9999}"]:
        text = part * (1_000_000 // len(part))
        assert len(redact(text, ALL)) <= 11 * len(text)
    start = "-----BEGIN PRIVATE KEY-----\n"
    for part in [start, start + BODY[:9] + "\n", start + "x " * 90, BODY[:8] + " ", "-----END "]:
        redact(start + part * (1_000_000 // len(part)), ALL)
