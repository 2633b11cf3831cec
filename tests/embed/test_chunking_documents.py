"""How a document is split: at headings as CommonMark has them, and where a part is full."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemic.embed.chunking import document_parts
from tests.support.paths import ROOT
from tests.support.tiers import examples

PAGES = sorted((ROOT / "docs").rglob("*.md"))

LINES = st.sampled_from(
    [
        *("# Billing", "## Cancel ##", "###### Deep", "#", "#no heading", "Set\n===", "ext\n---"),
        *("```", "```python", "~~~", "    # indented", "# in\tcode?", "---", "***", "+++"),
        *("- item\n  - nested\n    # inside", "1. one\n2. two", "> # quoted", ">> deeper"),
        *("| a | b |\n|---|---|\n| 1 | 2 |", "a | b", "<!--", "-->", "<div>", "[a]: /url 'title'"),
        *("", "", "\t", "A sentence. Another one!", "word " * 300, "x" * 900, "漢字。" * 200),
        *("\r", "e\u0301\u200d", "🙂" * 300, "\u2028", "\x0b", "\\# escaped", "&amp; `code`"),
    ]
)
DOCUMENTS = st.one_of(
    st.lists(LINES, max_size=30).map("\n".join),
    st.lists(LINES, max_size=30).map("\r\n".join),
    st.text(st.sampled_from("#-=`~>*_[]()!<|\\ \t\r\n1.ab漢"), max_size=300),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300),
)


def unblanked(text):
    return "".join(text.split())


def shown(text):
    return [(part.content, part.headings) for part in document_parts(text)]


@given(text=DOCUMENTS)
@example("\n" * 3000 + "[a]: /url\n\n# A\n\ntext")
@example("# " + "very long heading " * 200 + "\n\ntext")
@example(
    "\n\n".join(f"{'#' * level} {'漢字の見出し' * 12}" for level in range(1, 7))
    + "\n\n"
    + "漢" * 900
)
@examples(300)
def test_the_parts_together_hold_every_character_that_is_not_blank(text):
    whole, at = unblanked(text), 0
    for part in document_parts(text):
        content = unblanked(part.content)
        own = next(
            own
            for own in (content, unblanked(part.content.partition("\n\n")[2]))
            if own and whole.startswith(own, at)
        )
        at += len(own)
    assert at == len(whole)


@given(text=DOCUMENTS)
@examples(100)
def test_no_part_is_blank_or_longer_than_what_an_embedder_sees(text):
    for part in document_parts(text):
        assert part.content.strip()
        assert len(part.content) <= 762  # 254 tokens of three Latin letters


def test_a_part_has_the_headings_above_it_and_ends_where_the_next_one_begins():
    billing = "# Billing\n\nMoney.\n\n## Cancel\n\nAt any time.\n\n## Refunds\n\nIn May."
    assert shown(f"intro\n\n{billing}\n\n# Else\n\nNo.") == [
        ("intro", ()),
        ("# Billing\n\nMoney.", ("Billing",)),
        ("Billing\n\n## Cancel\n\nAt any time.", ("Billing", "Cancel")),
        ("Billing\n\n## Refunds\n\nIn May.", ("Billing", "Refunds")),
        ("# Else\n\nNo.", ("Else",)),
    ]


def test_headings_without_a_text_of_their_own_stand_in_the_next_part():
    assert shown("# A\n\n## B\n\n# C\n\n### D\n\ntext") == [
        ("# A\n\n## B\n\n# C\n\n### D\n\ntext", ("C", "D"))
    ]


def test_each_part_of_a_long_section_begins_with_its_path():
    text = "# Billing\n\n## Cancel\n\n" + "\n\n".join(f"{n}. " + "word " * 60 for n in range(6))
    parts = shown(text)
    assert len(parts) > 2
    assert {headings for _, headings in parts} == {("Billing", "Cancel")}
    assert all(content.startswith("Billing > Cancel\n\n") for content, _ in parts[1:])
    ends = [content.split()[-1] for content, _ in parts]
    assert set(ends) == {"word"}, "a paragraph that fits is not divided"


@pytest.mark.parametrize(
    "text",
    [
        "```sh\n# a comment\n```",
        "~~~\n# a comment\n~~~",
        "    # indented code",
        "> # quoted",
        "- item\n\n  # of the item",
        "<!--\n# hidden\n-->",
        "#hashtag",
        "\\# escaped",
        "---\ntitle: x\n# comment: y\n---",
        "| # a |\n|---|\n| # b |",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_that_only_look_like_headings_are_none(text, end):
    ((_, none), (_, own)) = shown(f"{text}\n\n# Own\n\ntext".replace("\n", end))
    assert (none, own) == ((), ("Own",))


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("Billing\n=======", "Billing"),
        ("## Closed ##", "Closed"),
        ("# The `add` *call*", "The add call"),
        ("  #   Spaces  ", "Spaces"),
        ("# A&amp;B", "A&B"),
        ("Two\nlines\n---", "Two lines"),
        ("# " + "long " * 30, ("long " * 30)[:59] + "…"),
    ],
)
def test_a_title_is_the_text_of_a_heading_without_marks(heading, title):
    assert shown(f"{heading}\n\ntext")[0][1] == (title,)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "word " * 200_000,
        "漢" * 300_000,
        "\n" * 1_000_000 + "x",
        "# h\n" * 100_000,
        "# h\n\ntext\n\n" * 100_000,
        "> " * 50_000 + "x",
        "- " * 5_000 + "x",
        "*" * 300_000,
        "[" * 300_000,
        "`" * 300_000,
        "<!--" * 100_000,
        "| a " * 100_000 + "\n" + "|---" * 100_000,
        "```\n" * 100_000,
        "a\n===\n" * 100_000,
        "\n".join(" " * depth + "- x" for depth in range(1_000)),
        "[a]: x\n" * 100_000,
        "*a_ " * 100_000,
        "![](" * 100_000,
    ],
    ids=lambda text: f"{text[:8]!r}",
)
@pytest.mark.timeout(60)
def test_no_text_takes_longer_than_its_length_explains(text):
    own = sum(len(unblanked(part.content)) for part in document_parts(text))
    assert own >= len(unblanked(text))


def test_pages_of_the_documentation_are_whole():
    for page in PAGES:
        text = page.read_text("utf-8")
        assert len(list(document_parts(text))) >= len(text) // 762
