"""Secrets that are broken into lines, emphasised, spaced out or quoted are found as plain ones."""

import base64
import itertools
import sys

import pytest

from mnemic import Memory
from mnemic.context.redaction import Redaction, redact
from mnemic.policy import RetrievalConfig, RetrievalPolicy
from tests.support.policy import request

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


@pytest.mark.requirement("R296", "C046")
@pytest.mark.parametrize("space", SPACES)
def test_any_white_space_stands_between_the_groups_of_a_card_or_an_iban(space):
    for secret in ["4111 1111 1111 1111", "GB82 WEST 1234 5698 7654 32"]:
        assert redact(f"It is {secret.replace(' ', space)} now", ALL) == "It is [REDACTED] now"


@pytest.mark.requirement("R296", "C045")
@pytest.mark.parametrize(
    "hider",
    [*"\u2800\u200b\u00ad\u0336\U0001d173\U0001bca0\U000e0041", "\ufe0f\u20e3"],
)
@pytest.mark.parametrize("secret", SECRETS)
def test_characters_without_a_picture_hide_nothing(secret, hider):
    assert redact(f"It is {hider.join(secret)} now", ALL) == "It is [REDACTED] now"


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


def test_time_is_linear_in_texts_that_are_made_of_parts():
    parts = ["1\n", "12\n>", "_", "1_", "@\n", "a@\n", "a@b\n", "1 \t", "078-\n", "GB\n", "+1\n"]
    for part in [*parts, "4111 **", f"4111{' ' * 9999}", f"@{' ' * 9999}", f"1-{chr(10) * 9999}"]:
        text = part * (1_000_000 // len(part))
        assert len(redact(text, ALL)) <= 11 * len(text)
    start = "-----BEGIN PRIVATE KEY-----\n"
    for part in [start, start + BODY[:9] + "\n", start + "x " * 90, BODY[:8] + " ", "-----END "]:
        redact(start + part * (1_000_000 // len(part)), ALL)
