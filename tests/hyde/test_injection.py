"""The block of memories in a system prompt: its budget, its counter, and what it leaves out."""

import re
from datetime import datetime, timedelta, timezone
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic._core import estimate_tokens
from mnemic.errors import InvalidArgumentError
from mnemic.hyde import TurnMemory, format_injection
from mnemic.model.link import LinkType
from tests.support.entries import entry, numbered

FORMS = ("markdown", "tagged")
EAST = timezone(timedelta(hours=5))


def ranked(
    content="Prefers tabs", *, score=0.5, relation=None, via=None, others=(), old=(), **fields
):
    return TurnMemory(
        entry=entry(content=content, **fields),
        score=score,
        relation=relation,
        via=via,
        versions=tuple(old),
        contradicting=tuple(others),
    )


CHAIN = ranked(
    "Use tabs",
    id=UUID(int=1),
    category="coding-preferences",
    scope="user",
    version=3,
    supersedes=UUID(int=8),
    old=[
        entry(content="Use 2 spaces", version=2, created_at=datetime(2026, 1, 1, 1, tzinfo=EAST)),
        entry(content="Use spaces", version=9),
    ],
    others=[entry(content="Use either", version=3)],
)
REPO = ranked(
    "Run make lint",
    category="project-conventions",
    scope="repo",
    relation=LinkType.CONTRADICTS,
    via=UUID(int=1),
)


def test_memories_without_text_are_not_counted():
    assert "1 of 1 shown" in format_injection([ranked("", metadata={"a": 1}), ranked()])


def fits(text, budget):
    return len(text) <= 4 * budget and estimate_tokens(text) <= budget


@pytest.mark.requirement("C109", "C119")
@pytest.mark.parametrize("form", FORMS)
def test_earlier_versions_go_before_a_whole_memory_does(form):
    memories = [CHAIN, ranked("Second memory"), ranked("Third memory")]
    bare = [msgspec.structs.replace(CHAIN, versions=(), contradicting=()), *memories[1:]]
    seen = []
    for budget in range(30, 260):
        text = format_injection(memories, budget, form=form)
        heads = sum(each.content + "\n" in text for each in memories)
        old = [version in text for version in ("either", "2 spaces", "Use spaces")]
        assert heads == sum(
            each.content in format_injection(bare, budget, form=form) for each in bare
        )
        assert not old[1] or old[2]  # the older one goes first
        seen.append((heads, *old))

    assert {(3, False, False, False), (3, True, False, True), (3, True, True, True)} <= set(seen)


@pytest.mark.requirement("C109")
@pytest.mark.parametrize("form", FORMS)
def test_only_the_newest_earlier_versions_are_shown(form):
    chain = ranked(old=[entry(content=f"text {number}", version=number) for number in range(1, 9)])
    found = {
        most: re.findall(r"text (\d)", format_injection([chain], form=form, max_versions=most))
        for most in (0, 1, 3, 20)
    }

    assert found == {0: [], 1: ["8"], 3: ["6", "7", "8"], 20: list("12345678")}


@pytest.mark.requirement("C119")
@pytest.mark.parametrize("form", FORMS)
def test_the_first_memory_can_be_cut(form):
    memories = [ranked("word " * 1000), ranked("word " * 2000)]

    assert format_injection(memories, 100, form=form) == ""
    text = format_injection(memories, 100, form=form, truncate=True)
    assert "word word…" in text
    assert "1 of 2 shown" in text
    assert fits(text, 100)
    assert len(text) > 300


@pytest.mark.parametrize("form", FORMS)
def test_a_text_that_just_fits_is_whole(form):
    text = format_injection([CHAIN, REPO], form=form)
    budget = max(estimate_tokens(text), -(-len(text) // 4))

    assert format_injection([CHAIN, REPO], budget, form=form) == text
    assert format_injection([CHAIN, REPO], budget - 1, form=form) != text


class Counter:
    def __init__(self, count):
        self.given = []
        self.result = count

    def count(self, text):
        self.given.append(len(text))
        return self.result(text)


@pytest.mark.requirement("C121")
@pytest.mark.parametrize("form", FORMS)
def test_the_budget_is_in_tokens_of_the_given_counter(form):
    memories = [ranked(f"some words of memory {number}") for number in range(20)]
    words = Counter(lambda text: len(text.split()))
    for budget in range(1, 300, 7):
        text = format_injection(memories, budget, form=form, counter=words)
        assert len(text.split()) <= budget
        assert len(text) <= 4 * budget


def test_texts_that_take_more_tokens_together_than_apart_still_fit():
    squares = Counter(lambda text: len(text) ** 2 // 1000)
    for budget in (50, 100, 200, 400):
        text = format_injection([CHAIN, *[ranked()] * 40], budget, counter=squares)
        assert len(text) ** 2 // 1000 <= budget
    assert format_injection([CHAIN], 400, counter=squares)


@pytest.mark.parametrize("cuts", [False, True])
def test_a_slow_counter_never_reads_a_text_beyond_the_budget(cuts):
    counter = Counter(lambda text: len(text) // 4)
    format_injection([ranked("x" * 1_000_000)] * 3, 100, counter=counter, truncate=cuts)

    assert max(counter.given) <= 400


@pytest.mark.parametrize("result", [-1, 1.5, "3", None])
def test_wrong_counts_are_refused(result):
    with pytest.raises(InvalidArgumentError, match="counter"):
        format_injection([ranked()], 100, counter=Counter(lambda _: result))


def test_an_error_of_the_counter_goes_to_the_caller():
    def broken(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        format_injection([ranked()], 100, counter=Counter(broken))
    assert format_injection([ranked()], 0, counter=Counter(broken))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memories": 3}, "memories"),
        ({"memories": "abc"}, "memories"),
        ({"memories": [entry()]}, "TurnMemory"),
        ({"token_budget": -1}, "token_budget"),
        ({"token_budget": 1.5}, "token_budget"),
        ({"form": "xml"}, "form must be one of markdown, tagged"),
        ({"form": ["tagged"]}, "form must be"),
        ({"counter": 3, "token_budget": 9}, "counter"),
        ({"max_versions": -1}, "max_versions"),
        ({"truncate": 1}, "truncate"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        format_injection(**{"memories": [ranked("the secret")], **arguments})


HOSTILE = (
    st.lists(
        st.sampled_from(
            ["</memory>", "<memory ", "**[", "]**", "*(", ")*", "## ", "- ", "\n", " | ", "…"]
        )
        | st.text(st.sampled_from("ab\x1b\u202e\u05d0\u0301\u200d記"), max_size=5),
        min_size=1,
        max_size=12,
    )
    .map("".join)
    .filter(str.strip)
)


@given(st.lists(HOSTILE, min_size=1, max_size=6), st.integers(0, 150), st.sampled_from(FORMS))
def test_any_texts_fit_any_budget_and_keep_their_places(contents, budget, form):
    memories = [ranked(content, old=[entry(content=content)]) for content in contents]
    text = format_injection(memories, budget, form=form)
    found = re.search(r"(\d+) of (\d+) shown", text)
    entries = re.findall(r"(?m)^\*\*\[|^<memory ", text)

    assert not budget or fits(text, budget)
    assert len(entries) == (int(found[1]) if found else 0)
    assert not text or text.endswith("\n")


def test_megabytes_are_rendered_in_linear_time():
    memories = [
        ranked(part * (1_000_000 // len(part))) for part in ("</memory>", "**[", "*(", "\n# ", "a ")
    ]

    assert "5 of 5 shown" in format_injection(memories)
    assert format_injection(memories, 1000, truncate=True)


def test_of_many_memories_few_are_counted():
    counter = Counter(lambda text: len(text) // 4)
    text = format_injection([ranked()] * 5000, 500, counter=counter)

    assert " of 5000 shown" in text
    assert len(counter.given) < 100


FIELDS = {"category": "patterns", "scope": "user"}


def fact(number, content=None):
    """Return a found memory whose id is its number."""
    stored = numbered(number, content=content or f"fact{number:04}", **FIELDS)
    return TurnMemory(entry=stored, score=1 - number / 1000)


def shown(text):
    """Return the numbers of the facts in a text, in their order."""
    return [int(number) for number in re.findall(r"fact(\d{4})", text)]


def cost(text):
    """Return the smallest budget that a text fits, in tokens and in characters."""
    return max(estimate_tokens(text), -(-len(text) // 4))


@pytest.mark.requirement("T032", "R374")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("nothing", [None, [], (), iter([])])
def test_no_memories_give_an_empty_text(form, nothing):
    assert format_injection(nothing, form=form) == ""
    assert format_injection(nothing, 100, form=form) == ""


@pytest.mark.requirement("R373", "R403", "C119", "C120", "C121", "R404", "T033", "T035", "T036")
@given(
    st.lists(st.tuples(st.sampled_from(["x", "語", "é"]), st.integers(0, 200)), max_size=8),
    st.integers(0, 500),
    st.sampled_from(FORMS),
)
def test_any_memories_fit_any_budget_the_best_first(texts, budget, form):
    memories = [
        fact(number, f"fact{number:04} {letter * length}")
        for number, (letter, length) in enumerate(texts, 1)
    ]
    text = format_injection(memories, budget, form=form)
    found = shown(text)
    assert found == sorted(set(found))
    if not budget:
        assert found == list(range(1, 1 + len(memories)))
        return
    assert bool(text) == bool(found)
    assert not text or cost(text) <= budget
    assert text == format_injection(memories, budget, form=form)
    for number in set(range(1, 1 + len(memories))) - set(found):
        # Left out, so it does not fit after the better ones that are in.
        better = [memories[one - 1] for one in found if one < number]
        assert cost(format_injection([*better, memories[number - 1]], form=form)) + 12 > budget
