"""Cuts the content of one memory so that its line takes at most a number of tokens."""

from collections.abc import Callable

from mnemic._core import estimate_tokens, truncate, truncate_to_tokens
from mnemic.context.prompt_block import PromptForm
from mnemic.context.tokens import Count
from mnemic.model.payload import PayloadMemory

MIN_CUT_TOKENS = 16
"""A content is cut only if at least this many tokens are left for it: fewer are a fragment."""

MAX_PROBES = 8
"""Calls of a foreign counter for one cut; an estimate needs one or two."""

MAX_UNUSED = 2
"""Tokens that the search for a cut may leave unused, so that it ends early."""

CHARACTERS_PER_TOKEN = 4
"""First guess of the search; the next ones are by the counter's own results."""

Cut = tuple[PayloadMemory, str, int]
"""A memory whose content is cut, its line, and the tokens of the line."""


def cut_to(
    memory: PayloadMemory, budget: int, form: PromptForm, count: Count, *, number: int
) -> Cut | None:
    """Return a memory with as much of its content as fits.

    Args:
        memory: A memory whose line takes more tokens than there are.
        budget: Number of tokens that are left for its line.
        form: Form of the block.
        count: Counts tokens.
        number: Number of its line.

    Returns:
        The cut memory; None if fewer than `MIN_CUT_TOKENS` are left for its content.
    """

    def measured(content: str) -> Cut:
        cut = memory.with_content(content, was_clipped=True)
        (line,) = form.lines([cut])
        return cut, line, count(f"{form.numbered(line, number)}\n")

    content_budget = budget - measured("…")[2]
    if content_budget < MIN_CUT_TOKENS:
        return None
    cut = _by_estimate if count is estimate_tokens else _by_search
    return cut(memory.content, budget, content_budget, measured)


def _by_estimate(
    content: str, budget: int, content_budget: int, measured: Callable[[str], Cut]
) -> Cut | None:
    tokens = content_budget + estimate_tokens("…")
    for _ in range(MAX_PROBES):
        text = truncate_to_tokens(content, tokens) if tokens > 0 else ""
        if text in _NOTHING:
            break
        cut = measured(text)
        if cut[2] <= budget:
            return cut
        tokens -= cut[2] - budget  # neutralising has made it longer
    return None


def _by_search(
    content: str, budget: int, content_budget: int, measured: Callable[[str], Cut]
) -> Cut | None:
    """Search for the longest head that fits, in proportion to the tokens of the last one."""
    best, fits, misses = None, 0, len(content)
    guess = content_budget * CHARACTERS_PER_TOKEN
    for _ in range(MAX_PROBES):
        if not fits < guess < misses:
            guess = (fits + misses) // 2
        if guess == fits:
            break
        text = truncate(content, guess)
        cut = None if text in _NOTHING else measured(text)
        left = 0 if cut is None else budget - cut[2]
        if left < 0:
            misses = guess
        else:
            best, fits = cut or best, guess
        if cut is not None and 0 <= left <= MAX_UNUSED:
            break
        guess = guess * content_budget // max(1, content_budget - left)
    return best


_NOTHING = ("", "…")
