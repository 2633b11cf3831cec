"""Tokens of a text, each with its entry in the lexicon."""

import re
from collections.abc import Iterator
from functools import lru_cache, partial

from mnemic.contradictions import vocabulary
from mnemic.contradictions.antonyms import AXES
from mnemic.contradictions.classes import SUBJECT_CLASSES, VALUE_CLASSES

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
_NEAR = 64
_MAX_CACHED_WORD = 32
_VOWEL = frozenset("aeiouy")
_NEVER_BEFORE_E = frozenset("aeiouwxy")
_DOUBLED = frozenset("bdgmnprt")
_WHOLE = frozenset({"plane", "planes", "caring", "staring", "eyed"})  # else plan, car, star, eye
_SIBILANT = ("ss", "x", "ch", "sh", "zz")


def _irregular() -> dict[str, str]:
    pairs = (pair.split() for pair in vocabulary.IRREGULAR.replace("\n", " ").split(","))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}  # noqa: PLR2004 - a pair


_IRREGULAR = _irregular()


def _bare(word: str, ending: int) -> str:
    """Return a word without its ending of so many letters: planned, plan; moving, mov."""
    rest = word[:-ending]
    if len(rest) > 2 and rest[-1] == rest[-2] and rest[-1] in _DOUBLED:  # noqa: PLR2004
        return rest[:-1]
    if len(rest) <= 3 and rest[-1] not in _NEVER_BEFORE_E and rest[-2] in _VOWEL:  # noqa: PLR2004
        return rest + "e" if len(rest) == 2 or rest[0] not in _VOWEL else rest  # noqa: PLR2004
    return rest


def stem(word: str) -> str:
    """Return the common stem of the forms of a lower-case English word."""
    if word in _WHOLE:
        return word
    base = _IRREGULAR.get(word, word)
    if base == word:
        base = _without_ending(word)
    if len(base) > 4 and base[-1] == "e":  # noqa: PLR2004 - wine is not win
        base = base[:-1]
    if len(base) > 2 and base[-1] == "y" and base[-2] not in _VOWEL:  # noqa: PLR2004
        base = base[:-1] + "i"
    return base.replace("iz", "is") if len(base) > 4 else base  # noqa: PLR2004 - American spelling


def _without_ending(word: str) -> str:
    size = len(word)
    if size > 4 and word.endswith("ly"):  # noqa: PLR2004 - shorter ones are no adverbs
        return word[:-2]
    if size > 3 and word[-1] == "s" and word[-2] not in "sui":  # noqa: PLR2004
        word = _singular(word)
        size = len(word)
    if size > 4:  # noqa: PLR2004 - "red", "king"
        if word.endswith("ied"):
            return word[:-2].replace("ie", "y") if size == 5 else word[:-3] + "y"  # noqa: PLR2004
        if word.endswith("ed") and not _VOWEL.isdisjoint(word[:-2]) and word[-3] != "e":
            return _bare(word, 2)
        if word.endswith("ing") and not _VOWEL.isdisjoint(word[:-3]):
            return _bare(word, 3)
    return word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:  # noqa: PLR2004 - ties, lies
        return word[:-3] + "y"
    if word.endswith("es") and word[:-2].endswith(_SIBILANT):
        return word[:-2]
    return word[:-1]


class Lexeme:
    """Entry of a word or a phrase, independent of the text."""

    __slots__ = (
        "attributes",
        "axes",
        "cues",
        "is_first_person",
        "is_functional",
        "is_many_valued",
        "is_negator",
        "is_stop",
        "is_verb",
        "key",
        "subject_classes",
        "value_classes",
    )

    def __init__(self, key: str) -> None:
        self.key = key
        self.attributes: tuple[str, ...] = ()
        self.axes: tuple[tuple[int, int], ...] = ()
        self.cues: frozenset[str] = frozenset()
        self.is_first_person = False
        self.is_functional = False
        self.is_many_valued = False
        self.is_negator = False
        self.is_stop = False
        self.is_verb = False
        self.subject_classes: tuple[tuple[str, str], ...] = ()
        self.value_classes: tuple[tuple[str, str], ...] = ()

    def stem_negates(self, tokens: "list[Token]", position: int) -> bool:
        """Return whether the word negates the action that follows: stopped smoking."""
        if self.key not in _ENDING or position + 1 >= len(tokens):
            return False
        return tokens[position + 1].text.endswith("ing")


Phrase = tuple[str, ...]
_VERB_STEMS = frozenset(stem(word) for word in vocabulary.VERBS)
_ENDING = frozenset({"stop", "quit", "ceas", "refus", "fail", "forget"})


class Lexicon:
    """All tables, by the stems of the words. Built once, when the first judge is made."""

    def __init__(self) -> None:
        self._canonical = _canonical_stems()
        self._by_phrase: dict[Phrase, Lexeme] = {}
        self._add_axes()
        self._add_classes()
        self._add_attributes()
        self._add_cues()
        self.words = {
            phrase[0]: word for phrase, word in self._by_phrase.items() if len(phrase) == 1
        }
        # By the first two words; nearly all words that begin a phrase stand alone in a text.
        self.phrases: dict[str, dict[str, list[tuple[Phrase, Lexeme]]]] = {}
        for phrase, lexeme in sorted(self._by_phrase.items(), key=lambda item: -len(item[0])):
            if len(phrase) > 1:
                by_second = self.phrases.setdefault(phrase[0], {})
                by_second.setdefault(phrase[1], []).append((phrase, lexeme))

        # Of single words, not of texts; a conversation has few different ones.
        self.tokens = lru_cache(maxsize=16384)(partial(_word_tokens, lexicon=self))

    def lexeme(self, word: str, word_stem: str) -> Lexeme:
        """Return the entry of a word, given in lower case with its stem."""
        known = self.words.get(word_stem)
        if known is None:
            known = Lexeme(self._canonical.get(word_stem, word_stem))
        if word in vocabulary.STOP_WORDS or word in vocabulary.FIRST_PERSON:
            return self._function_word(word, known)
        return known

    def _function_word(self, word: str, known: Lexeme) -> Lexeme:
        copy = Lexeme(known.key)
        for name in Lexeme.__slots__:
            setattr(copy, name, getattr(known, name))
        copy.is_stop = word in vocabulary.STOP_WORDS
        copy.is_first_person = word in vocabulary.FIRST_PERSON
        return copy

    def _of(self, words: str) -> Lexeme:
        phrase = tuple(
            stem(word) for word in words.lower().replace("-", " ").replace("'", " ").split()
        )
        lexeme = self._by_phrase.get(phrase)
        if lexeme is None:
            key = phrase[0] if len(phrase) == 1 else " ".join(phrase)
            lexeme = self._by_phrase[phrase] = Lexeme(self._canonical.get(key, key))
            lexeme.is_verb = len(phrase) > 1 and phrase[0] in _VERB_STEMS
            lexeme.is_first_person = not vocabulary.FIRST_PERSON.isdisjoint(phrase)
        return lexeme

    def _inherit(self) -> None:
        """Give a phrase with a preposition the axes of its first word: engaged to."""
        for phrase, lexeme in self._by_phrase.items():
            first = self._by_phrase.get(phrase[:1])
            if first and len(phrase) > 1 and phrase[-1] in vocabulary.PREPOSITIONS:
                lexeme.axes = lexeme.axes or first.axes
                lexeme.is_negator = lexeme.is_negator or first.is_negator

    def _add_axes(self) -> None:
        for axis, line in enumerate(AXES.strip().splitlines()):
            for sign, end in zip((1, -1), line.removeprefix("~ ").split(" / "), strict=True):
                for words in _items(end):
                    lexeme = self._of(words)
                    if line.startswith("~") and sign < 0:
                        lexeme.cues |= {"denial"}
                    if (axis, sign) not in lexeme.axes:
                        lexeme.axes += ((axis, sign),)

    def _add_classes(self) -> None:
        for name, member, spelling in _classes(VALUE_CLASSES):
            self._of(spelling).value_classes += ((name, member),)
        for name, member, spelling in _classes(SUBJECT_CLASSES):
            self._of(spelling).subject_classes += ((name, member),)

    def _add_attributes(self) -> None:
        for name, _, spelling in _classes(vocabulary.ATTRIBUTES):
            lexeme = self._of(spelling)
            if name not in lexeme.attributes:
                lexeme.attributes += (name,)
        for line in vocabulary.SYNONYMS.strip().splitlines():
            for words in _items(line):
                if " " in words:
                    self._of(words)

    def _add_cues(self) -> None:
        for cue in ("PAST", "GONE", "PRESENT", "PLAN", "EXCEPTION", "EXCLUSIVE", "CHANGE"):
            for words in _items(getattr(vocabulary, f"{cue}_CUES")):
                lexeme = self._of(words)
                lexeme.cues |= {cue.lower()}
        for words in _items(vocabulary.REPLACEMENTS):
            lexeme = self._of(words)
            lexeme.cues |= {"replacement", "change"}
        self._add_parts()

    def _add_parts(self) -> None:
        """Record which words negate, are verbs, or lead to one value or to many."""
        for words in _items(vocabulary.NEGATORS):
            self._of(words).is_negator = True
        for words in _items(vocabulary.FUNCTIONAL):
            self._of(words).is_functional = True
        for word in vocabulary.MANY_VALUED:
            self._of(word).is_many_valued = True
        for word in vocabulary.VERBS:
            self._of(word).is_verb = True


def _items(text: str) -> Iterator[str]:
    for item in text.replace("\n", " ").split(","):
        if item.strip():
            yield item.strip()


def _classes(table: str) -> Iterator[tuple[str, str, str]]:
    for line in table.strip().splitlines():
        name, members = line.split(": ")
        for member in _items(members):
            first = member.split("|")[0]
            for spelling in member.split("|"):
                yield name, first, spelling


def _canonical_stems() -> dict[str, str]:
    canonical: dict[str, str] = {}
    for line in vocabulary.SYNONYMS.strip().splitlines():
        stems = [" ".join(stem(word) for word in item.split()) for item in _items(line)]
        for item in stems:
            canonical.setdefault(item, canonical.get(stems[0], stems[0]))
    return canonical


class Token:
    """One word, number or mark of a text.

    Attributes:
        kind: "word", "number", "mark" and the like: the name of the pattern that found it.
        text: In lower case.
        is_capital: Whether it begins with a capital letter.
        is_possessive: Whether 's followed.
    """

    __slots__ = ("is_capital", "is_possessive", "kind", "lexeme", "stem", "text")

    def __init__(self, kind: str, text: str, lexeme: Lexeme, word_stem: str) -> None:
        self.kind = kind
        self.text = text
        self.lexeme = lexeme
        self.stem = word_stem
        self.is_capital = False
        self.is_possessive = False


_MARK = Lexeme("")
_SHORT_NOT = {"won't": "will", "can't": "can", "shan't": "shall", "ain't": "is", "cannot": "can"}
_BARE_NOT = {
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


def tokens_of(text: str, lexicon: Lexicon) -> list[Token]:
    """Return the tokens of a text's head in order, phrases of the lexicon as one token."""
    found: list[Token] = []
    for match in _TOKEN.finditer(head(text).replace("\u2019", "'")):
        kind = match.lastgroup
        raw = match.group()
        if kind in {"word", "rest", "code"}:
            is_cached = len(raw) <= _MAX_CACHED_WORD  # so that the cache has a bound in bytes
            found += lexicon.tokens(raw) if is_cached else _word_tokens(raw, lexicon)
        else:
            found.append(Token(kind or "mark", raw.lower(), _MARK, raw))
    return _with_phrases(found, lexicon)


def _word_tokens(raw: str, lexicon: Lexicon) -> tuple[Token, ...]:
    """Return the one token of a word as it is written, or two: isn't, is not."""
    word = raw.lower()
    is_possessive = False
    negated = _SHORT_NOT.get(word) or _BARE_NOT.get(word)
    if negated is None and word.endswith("n't"):
        negated = word[:-3]
    if negated is not None:
        word = negated
    elif "'" in word:
        word, _, rest = word.partition("'")
        is_possessive = rest == "s" or not rest
    word_stem = stem(word)
    token = Token("word", word, lexicon.lexeme(word, word_stem), word_stem)
    token.is_capital = raw[0].isupper()
    token.is_possessive = is_possessive
    if negated is None:
        return (token,)
    return token, Token("word", "not", lexicon.lexeme("not", "not"), "not")


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
                    token = Token("word", " ".join(phrase), lexeme, lexeme.key)
                    position += size - 1
                    break
        merged.append(token)
        position += 1
    return merged
