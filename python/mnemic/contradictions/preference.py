"""Preferences of a text: prefers A to B, rather A than B, picks A over B."""

from itertools import islice

from mnemic.contradictions.reading import Preference
from mnemic.contradictions.tokens import SENTENCE_ENDS, Token

_CUES = frozenset({"prefer", "rather", "sooner", "pick", "choos", "favour", "like"})
_JOINERS = {"prefer": frozenset({"to", "over", "rather than"}), "like": frozenset({"more"})}
_OTHER_JOINERS = frozenset({"than", "over"})
_REACH = 3  # words before a cue in which a negator denies it
_MAX_TOKENS = 64  # after a cue, so that a run of them takes linear time


def preference_of(tokens: list[Token], negators: set[int]) -> Preference:
    """Return the first preference of a text, given the positions of its negators."""
    for position, token in enumerate(tokens):
        if token.stem in _CUES:
            found = _split(tokens, position)
            is_denied = not negators.isdisjoint(range(position - _REACH, position))
            if found.dispreferred or (token.stem == "prefer" and not is_denied):
                return found
    return Preference()


def _split(tokens: list[Token], position: int) -> Preference:
    """Return the words on both sides of what joins them: to, over, than."""
    joiners = _JOINERS.get(tokens[position].stem, _OTHER_JOINERS)
    preferred: set[str] = set()
    dispreferred: set[str] = set()
    side = preferred
    for token in islice(tokens, position + 1, position + 1 + _MAX_TOKENS):
        if token.text in SENTENCE_ENDS or token.text == ",":
            break
        if token.text in joiners or (token.text == "than" and side is preferred):
            side = dispreferred
        elif token.kind == "word" and not token.lexeme.is_stop:
            side.add(token.lexeme.key)
    return Preference(frozenset(preferred), frozenset(dispreferred))
