"""Tokens of a text, each with its entry in the lexicon."""

import re
from functools import lru_cache

import msgspec

from mnemic.contradictions.vocabulary import Lexeme, Lexicon, lexicon, stem

_TOKEN = re.compile(
    r"""(?P<word>[^\W\d_]++(?:'[^\W\d_]++)*+(?![\d@/]|://))
    |(?P<place>https?://[^\s,;]+|(?<!\w)(?:/[\w.-]+)+|[\w.+-]{1,64}+@[\w-]{1,255}+\.[\w.]+)
    |(?P<iso>\d{4}-\d\d-\d\d)
    |(?P<clock>\d{1,2}[:.]\d\d(?=\s*(?:[ap]\.?m\b|o'clock|h\b))|\d{1,2}:\d\d)
    |(?P<version>\bv\d+(?:\.\d+)*|\d+(?:\.\d+){2,})
    |(?P<ordinal>\d+(?:st|nd|rd|th)\b)
    |(?P<code>\d+[a-zA-Z]+\d\w*|[a-zA-Z]+\d\w*)
    |(?P<number>\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)
    |(?P<unit>km/h|m[bB]it/s|°[CF]?|[%$€£¥])
    |(?P<rest>[^\W\d_]+(?:'[^\W\d_]+)*)
    |(?P<mark>[.!?;,:()"\u2013\u2014]|(?<![^\W\d_])-|-(?![^\W\d_]))""",
    re.VERBOSE,
)
MAX_CHARACTERS = 4096
"""Maximum characters of a text for a judge: its head, cut at a space if one is near."""
SENTENCE_ENDS = frozenset(".!?;")
_NEAR = 64
_MAX_CACHED_WORD = 32


class Token(msgspec.Struct, eq=False, gc=False):
    """One word, number or mark of a text.

    Attributes:
        kind: "word", "number", "mark" and the like: the name of the pattern that found it.
        text: In lower case.
        is_capital: Whether it begins with a capital letter.
        is_possessive: Whether 's followed.
    """

    kind: str
    text: str
    lexeme: Lexeme
    stem: str
    is_capital: bool = False
    is_possessive: bool = False


_MARK = Lexeme("")
FULL_STOP = Token("mark", ".", _MARK, ".")
_WITHOUT_NOT = {
    "won't": "will", "can't": "can", "shan't": "shall", "ain't": "is", "cannot": "can",
    "dont": "do", "doesnt": "does", "didnt": "did", "isnt": "is", "arent": "are", "wasnt": "was",
    "cant": "can", "wont": "will", "hasnt": "has", "havent": "have", "shouldnt": "should",
    "couldnt": "could", "wouldnt": "would",
}  # fmt: skip


def head(text: str) -> str:
    """Return the part of a text that is read: at most `MAX_CHARACTERS`."""
    text = text.lstrip()
    if len(text) <= MAX_CHARACTERS:
        return text
    space = text.rfind(" ", MAX_CHARACTERS - _NEAR, MAX_CHARACTERS)
    return text[: MAX_CHARACTERS if space < 0 else space]


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text's head in order, phrases of the lexicon as one token."""
    found: list[Token] = []
    for match in _TOKEN.finditer(head(text).replace("\u2019", "'")):
        kind = match.lastgroup
        raw = match.group()
        if kind in {"word", "rest", "code"}:
            is_cached = len(raw) <= _MAX_CACHED_WORD  # so that the cache has a bound in bytes
            found += _cached_word_tokens(raw) if is_cached else _word_tokens(raw)
        else:
            found.append(Token(kind or "mark", raw.lower(), _MARK, raw))
    return _with_phrases(found, lexicon())


def _word_tokens(raw: str) -> tuple[Token, ...]:
    """Return the one token of a word as it is written, or two: isn't, is not."""
    word = raw.lower()
    is_possessive = False
    following = ""
    if word in _WITHOUT_NOT or word.endswith("n't"):
        word, following = _WITHOUT_NOT.get(word, word[:-3]), "not"
    elif word.endswith("'d"):  # nearly always of a wish: I'd like
        word, following = word[:-2], "would"
    elif "'" in word:
        word, _, rest = word.partition("'")
        is_possessive = rest == "s" or not rest
    token = _word_token(word)
    token.is_capital = raw[0].isupper()
    token.is_possessive = is_possessive
    return (token, _word_token(following)) if following else (token,)


def _word_token(word: str) -> Token:
    word_stem = stem(word)
    return Token("word", word, lexicon().lexeme(word, word_stem), word_stem)


# Of single words, not of texts; a conversation has few different ones.
_cached_word_tokens = lru_cache(maxsize=16384)(_word_tokens)


def _with_phrases(tokens: list[Token], lexicon: Lexicon) -> list[Token]:
    phrases = lexicon.phrases
    merged: list[Token] = []
    last = len(tokens) - 1
    position = 0
    while position <= last:
        token = tokens[position]
        by_second = phrases.get(token.stem) if position < last else None
        if by_second is not None and token.kind == "word":
            for phrase, lexeme in by_second.get(tokens[position + 1].stem, ()):
                size = len(phrase)
                if tuple(part.stem for part in tokens[position : position + size]) == phrase:
                    text = " ".join(part.text for part in tokens[position : position + size])
                    token = Token("word", text, lexeme, lexeme.key)
                    position += size - 1
                    break
        merged.append(token)
        position += 1
    return merged
