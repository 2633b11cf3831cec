"""The words of the rules: tables, stems, and what each word of a text tells."""

import pkgutil
from collections.abc import Iterator
from copy import copy
from functools import cache

import msgspec


def lines(table: str) -> Iterator[str]:
    """Yield the lines of a table without its comments; an indented line goes on with the last."""
    text = (pkgutil.get_data("mnemic.contradictions", f"data/{table}.txt") or b"").decode()
    for line in text.replace("\n    ", " ").splitlines():
        if line and not line.startswith("#"):
            yield line


def items(text: str) -> list[str]:
    """Return the words and phrases of a list with commas."""
    return text.split(", ")


def entries(table: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the names of a table with their words and phrases."""
    for line in lines(table):
        name, _, listed_items = line.partition(": ")
        yield name, items(listed_items)


def listed(text: str) -> list[str]:
    """Return the words of a text in order."""
    return text.split()


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(listed(text))


LISTS = dict(entries("words"))
PARTS = {name: frozenset(members) for name, members in LISTS.items()}
"""Words by their part in a sentence, in the order of the table and as sets."""
STOP_WORDS = PARTS["stop words"]
FIRST_PERSON = PARTS["first person"]
PREPOSITIONS = PARTS["prepositions"]
CONJUNCTIONS = PARTS["conjunctions"]
"""Words at which a clause ends, and with it what a negation says."""
NEGATORS = PARTS["negators"]
VERBS = PARTS["verbs"]
PERSON_VERBS = PARTS["person verbs"]
"""Verbs whose subject is a person."""
LIGHT_VERBS = PARTS["light verbs"]
"""Verbs that only lead to what is denied."""
MANY_VALUED = PARTS["many-valued"]
"""Verbs whose object may be many things at once: two different ones do not disagree."""
FUNCTIONAL = PARTS["functional"]
"""Verbs and nouns whose object is one thing: two different ones disagree."""
MEASURE_NOUNS = PARTS["measure nouns"]
"""Nouns that say what a measure measures."""
PEOPLE = PARTS["people"]
"""Counted people: forty guests and thirty people may be the same ones."""


_VOWEL = frozenset("aeiouy")
_NEVER_BEFORE_E = frozenset("aeiouwxy")
_DOUBLED = frozenset("bdgmnprt")
# Else plan, car, star, eye, even, bare, hard, rare, scarce.
_WHOLE = words("plane planes caring staring eyed evening barely hardly rarely scarcely")
_SIBILANT = ("ss", "x", "ch", "sh", "zz")
_IRREGULAR = {form: base for base, forms in entries("irregular") for form in forms}


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


class Lexeme(msgspec.Struct, eq=False, gc=False):
    """Entry of a word or a phrase, independent of the text."""

    key: str
    attributes: tuple[str, ...] = ()
    axes: tuple[tuple[int, int], ...] = ()
    cues: frozenset[str] = frozenset()
    is_first_person: bool = False
    is_functional: bool = False
    is_many_valued: bool = False
    is_negator: bool = False
    is_stop: bool = False
    is_verb: bool = False
    qualifiers: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()


Phrase = tuple[str, ...]


class Lexicon:
    """All tables, by the stems of the words."""

    def __init__(self) -> None:
        self._canonical = _canonical_keys()
        self._verb_stems = frozenset(stem(word) for word in VERBS)
        self._by_phrase: dict[Phrase, Lexeme] = {}
        self._add_opposites()
        self._add_values()
        self._add_cues()
        self._add_parts()
        self.words = {
            phrase[0]: word for phrase, word in self._by_phrase.items() if len(phrase) == 1
        }
        # By the first two words; nearly all words that begin a phrase stand alone in a text.
        self.phrases: dict[str, dict[str, list[tuple[Phrase, Lexeme]]]] = {}
        for phrase, lexeme in sorted(self._by_phrase.items(), key=lambda item: -len(item[0])):
            if len(phrase) > 1:
                by_second = self.phrases.setdefault(phrase[0], {})
                by_second.setdefault(phrase[1], []).append((phrase, lexeme))

    def lexeme(self, word: str, word_stem: str) -> Lexeme:
        """Return the entry of a word, given in lower case with its stem."""
        known = self.words.get(word_stem)
        if known is None:
            known = Lexeme(self._canonical.get(word_stem, word_stem))
        if word in STOP_WORDS or word in FIRST_PERSON:
            known = copy(known)
            known.is_stop = word in STOP_WORDS
            known.is_first_person = word in FIRST_PERSON
        return known

    def _of(self, words: str) -> Lexeme:
        phrase = _phrase(words)
        lexeme = self._by_phrase.get(phrase)
        if lexeme is None:
            key = " ".join(phrase)
            lexeme = self._by_phrase[phrase] = Lexeme(self._canonical.get(key, key))
            lexeme.is_verb = len(phrase) > 1 and phrase[0] in self._verb_stems
            lexeme.is_first_person = not FIRST_PERSON.isdisjoint(phrase)
        return lexeme

    def _add_opposites(self) -> None:
        for axis, line in enumerate(lines("opposites")):
            ends = line.lstrip("~ ").split(" / ")
            for sign, end in zip((1, -1), ends, strict=True):
                for words in items(end):
                    lexeme = self._of(words)
                    lexeme.axes += ((axis, sign),)
                    if line.startswith("~") and sign < 0:
                        lexeme.cues |= {"denial"}
                    if line.startswith("~~"):
                        lexeme.cues |= {"attitude"}

    def _add_values(self) -> None:
        for kind, member, spelling in _spellings("values"):
            self._of(spelling).values += ((kind, member),)
        for kind, member, spelling in _spellings("qualifiers"):
            self._of(spelling).qualifiers += ((kind, member),)
        for attribute, tellers in entries("attributes"):
            for words in tellers:
                self._of(words).attributes += (attribute,)

    def _add_cues(self) -> None:
        for names, members in entries("cues"):
            for words in members:
                self._of(words).cues |= set(names.split())

    def _add_parts(self) -> None:
        """Record which words negate, are verbs, or lead to one value or to many."""
        for words in NEGATORS:
            self._of(words).is_negator = True
        for words in FUNCTIONAL:
            self._of(words).is_functional = True
        for word in MANY_VALUED:
            self._of(word).is_many_valued = True
        for word in VERBS:
            self._of(word).is_verb = True
        for first, others in entries("synonyms"):
            for words in (first, *others):
                if " " in words:  # so that it is found as one
                    self._of(words)


@cache
def lexicon() -> Lexicon:
    """Return the one lexicon, built at the first call: that takes 15 ms."""
    return Lexicon()


def _spellings(table: str) -> Iterator[tuple[str, str, str]]:
    """Yield each kind, a member of it, and a spelling of the member."""
    for kind, members in entries(table):
        for member in members:
            spellings = member.split("|")
            for spelling in spellings:
                yield kind, spellings[0], spelling


def _phrase(words: str) -> Phrase:
    return tuple(stem(word) for word in words.replace("-", " ").split())


def _canonical_keys() -> dict[str, str]:
    keys: dict[str, str] = {}
    for first, others in entries("synonyms"):
        key = " ".join(_phrase(first))
        for words in others:
            keys[" ".join(_phrase(words))] = keys.get(key, key)
    return keys
