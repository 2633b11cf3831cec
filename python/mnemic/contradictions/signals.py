"""Signals: disagreements of two texts, and guards against false ones."""

from itertools import product
from typing import NamedTuple

from mnemic.contradictions import vocabulary
from mnemic.contradictions.lexicon import stem
from mnemic.contradictions.parse import SUBJECT_KEY, Reading
from mnemic.contradictions.quantity import Quantity, agree

_PEOPLE = frozenset(stem(word) for word in vocabulary.PEOPLE)
_TEMPORAL = frozenset({"clock", "weekday", "date"})


class Signal(NamedTuple):
    """One disagreement: its kind, for a reader, and the words that disagree."""

    kind: str
    reason: str
    words: frozenset[str] = frozenset()


class Pair:
    """Two parsed texts with their common and different parts."""

    def __init__(self, older: Reading, newer: Reading) -> None:
        self.older = older
        self.newer = newer
        self.shared = older.keys.keys() & newer.keys.keys()
        self.topics = self.shared - {SUBJECT_KEY}

    # Guards

    def has_other_people(self) -> bool:
        """Return whether the two are about different persons or named things."""
        older, newer = self.older, self.newer
        mine, theirs = older.people, newer.people
        if mine and theirs:
            if mine & theirs:
                extra, others = mine - theirs, theirs - mine
                return bool(extra and others) and not (extra | others) & {SUBJECT_KEY}
            return not (mine & _mentioned(newer) or theirs & _mentioned(older))
        mine, theirs = mine | older.weak_people, theirs | newer.weak_people
        if mine and theirs:
            return not (mine & _mentioned(newer) or theirs & _mentioned(older))
        return False

    def has_other_subject(self) -> bool:
        """Return whether the two state the same of two different things."""
        older, newer = self.older, self.newer
        if not older.heads or not newer.heads:
            return False
        if older.heads == newer.heads:
            mine = older.subjects - newer.keys.keys() - {SUBJECT_KEY}
            theirs = newer.subjects - older.keys.keys() - {SUBJECT_KEY}
            return bool(mine and theirs)
        if older.verb != newer.verb:
            return False
        if older.heads <= newer.keys.keys() and newer.heads <= older.keys.keys():
            return False
        if older.is_passive != newer.is_passive and (
            older.heads <= newer.keys.keys() or newer.heads <= older.keys.keys()
        ):
            return False  # the contract is signed; both sides signed the contract
        return older.verb != "be" or (
            older.heads.isdisjoint(newer.keys) and newer.heads.isdisjoint(older.keys)
        )

    def is_turned_around(self) -> bool:
        """Return whether the two swap the compared things: A before B, B after A."""
        older, newer = self.older, self.newer
        return (
            bool(older.heads)
            and bool(newer.heads)
            and older.heads.isdisjoint(newer.heads)
            and older.heads <= newer.keys.keys()
            and newer.heads <= older.keys.keys()
            and SUBJECT_KEY not in older.heads | newer.heads
        )

    def qualifiers(self, words: frozenset[str]) -> list[str]:
        """Return the difference that makes both possible: another thing, place, part or time."""
        older, newer = self.older, self.newer
        found = []
        for name, mine in older.marks.items():
            theirs = newer.marks.get(name)
            if theirs and mine.keys().isdisjoint(theirs):
                first = older.tokens[next(iter(mine.values()))].lexeme.key
                second = newer.tokens[next(iter(theirs.values()))].lexeme.key
                if first in words or second in words or first in newer.keys or second in older.keys:
                    continue
                found.append(f"{next(iter(mine))} / {next(iter(theirs))}")
        return found

    def other_object(self, words: frozenset[str]) -> str:
        """Return a preposition that leads to different things in the two, or an empty text."""
        for preposition, mine in self.older.objects.items():
            theirs = self.newer.objects.get(preposition)
            if theirs is None:
                continue
            first, second = mine - words, theirs - words
            if (
                first
                and second
                and first.isdisjoint(self.newer.keys)
                and second.isdisjoint(self.older.keys)
            ):
                return preposition
        return ""

    def has_other_names(self, words: frozenset[str]) -> bool:
        """Return whether each names something that the other does not."""
        mine = self.older.names.keys() - self.newer.keys.keys() - self.newer.names.keys() - words
        theirs = self.newer.names.keys() - self.older.keys.keys() - self.older.names.keys() - words
        return bool(mine and theirs)

    # Signals

    def signals(self) -> list[Signal]:
        """Return all disagreements."""
        return (
            self.number_signals()
            + self.opposite_signals()
            + self.prefix_signals()
            + self.negation_signals()
            + self.class_signals()
            + self.attribute_signals()
            + self.open_value_signals()
            + self.replacement_signals()
            + self.preference_signals()
        )

    def number_signals(self) -> list[Signal]:
        """Find numbers and times of one kind that cannot both hold."""
        found = []
        mine, theirs = self.older.quantities, self.newer.quantities
        unmatched = [
            other
            for other in theirs
            if not any(comparable(one, other) and agree(one, other) for one in mine)
        ]
        for one in mine:
            rivals = [other for other in unmatched if comparable(one, other)]
            if rivals and not any(comparable(one, other) and agree(one, other) for other in theirs):
                found.append(self._number_signal(one, rivals[0]))
        return found

    def _number_signal(self, one: Quantity, other: Quantity) -> Signal:
        kind = self._number_kind(one, other)
        what = "time" if kind == "time" else "value"
        reason = f"different {what}: {one.text} / {other.text}"
        return Signal(kind, reason, one.nouns ^ other.nouns)

    def _number_kind(self, one: Quantity, other: Quantity) -> str:
        in_subject = self._is_in_subject(self.older, one) and self._is_in_subject(self.newer, other)
        if in_subject and (one.is_label or one.kind in {"rank", "version"}):
            return "label"
        if one.kind == "rank":
            return "weak"
        return "time" if one.kind in _TEMPORAL else "number"

    @staticmethod
    def _is_in_subject(reading: Reading, quantity: Quantity) -> bool:
        return reading.first_verb < 0 or quantity.start < reading.first_verb

    def opposite_signals(self) -> list[Signal]:
        """Find words of opposite ends of an axis, negations taken into account."""
        found: dict[tuple[int, int], Signal] = {}
        is_turned_around = self.is_turned_around()
        for axis, mine in self.older.axes.items():
            theirs = self.newer.axes.get(axis)
            if theirs is None:
                continue
            signs = {sign for sign, _ in mine}
            other_signs = {sign for sign, _ in theirs}
            if len(signs) == 1 and len(other_signs) == 1 and signs != other_signs:
                place, other_place = mine[0][1], theirs[0][1]
                kind = self._opposite_kind(place, other_place)
                first = self.older.tokens[place].text
                if is_turned_around and _compares(first):
                    continue
                second = self.newer.tokens[other_place].text
                reason = f"opposites: {first} / {second}"
                if first == second:
                    reason = f"one says {first}, the other denies it"
                words = frozenset(
                    {self.older.tokens[place].lexeme.key, self.newer.tokens[other_place].lexeme.key}
                )
                found[place, other_place] = Signal(kind, reason, words)
        return list(found.values())

    def _opposite_kind(self, place: int, other_place: int) -> str:
        older, newer = self.older, self.newer
        noun, other_noun = _described(older, place), _described(newer, other_place)
        if noun and other_noun:
            is_subject = place < older.first_verb and other_place < newer.first_verb
            if is_subject or (noun not in newer.keys and other_noun not in older.keys):
                return "qualifier"
            return "weak"
        if older.tokens[place].text in {"with", "without"}:
            return "weak"
        if older.tokens[place].text in _BEFORE_AFTER:
            return "weak"
        return "opposite"

    def prefix_signals(self) -> list[Signal]:
        """Find words that differ by an opposing prefix: happy, unhappy."""
        found = []
        for one, other in ((self.older, self.newer), (self.newer, self.older)):
            for word in one.stems:
                if not word.startswith(_OPPOSING_PREFIXES):
                    continue
                for prefix in _OPPOSING_PREFIXES:
                    if word.startswith(prefix) and word[len(prefix) :] in other.stems:
                        rest = word[len(prefix) :]
                        if (
                            word in other.stems
                            or len(rest) < _STEM
                            or rest in other.negated
                            or word in one.negated
                        ):
                            continue
                        found.append(
                            Signal(
                                "opposite",
                                f"opposites: {rest} / {word}",
                                frozenset({word, rest}),
                            )
                        )
        return found

    def negation_signals(self) -> list[Signal]:
        """Find statements of one that the other negates."""
        older, newer = self.older, self.newer
        is_odd = (len(older.negations) + len(newer.negations)) % 2
        if is_odd and older.keys.keys() == newer.keys.keys():
            return [Signal("negation", "one denies what the other says")]
        found = []
        for one, other in ((self.older, self.newer), (self.newer, self.older)):
            if other.negations or other.is_negative:
                continue
            for _, axes, keys in one.negations:
                if not axes.isdisjoint(other.axes):
                    continue  # the negation turned an opposite around
                topics = [
                    key
                    for key in keys
                    if key not in one.people and key not in vocabulary.LIGHT_VERBS
                ]
                denied = [
                    key for key in topics if key in other.affirmed and key not in one.affirmed
                ]
                if denied and not set(denied) <= one.names.keys():
                    found.append(Signal("negation", f"one denies it: {' '.join(denied)}"))
        return found

    def class_signals(self) -> list[Signal]:
        """Find two different values of one kind."""
        found = []
        older, newer = self.older, self.newer
        for name, mine in older.values.items():
            theirs = newer.values.get(name)
            if not theirs or not mine.keys().isdisjoint(theirs):
                continue
            first, second = next(iter(mine)), next(iter(theirs))
            before = mine[first] < older.first_verb and theirs[second] < newer.first_verb
            kind = "qualifier" if before else "value"
            words = frozenset(
                {older.tokens[mine[first]].lexeme.key, newer.tokens[theirs[second]].lexeme.key}
            )
            found.append(Signal(kind, f"different {name}: {first} / {second}", words))
        return found

    def attribute_signals(self) -> list[Signal]:
        """Find two values of one attribute: lives in one town, moved to another."""
        older, newer = self.older, self.newer
        found = []
        for name in (name for name in older.attributes if name in newer.attributes):
            mine = self._values(older, newer, older.attributes[name])
            theirs = self._values(newer, older, newer.attributes[name])
            if mine and theirs:
                found.append(
                    Signal(
                        "attribute",
                        f"different {name}: {' '.join(mine)} / {' '.join(theirs)}",
                        frozenset(mine) | frozenset(theirs) | self._attribute_words(name),
                    )
                )
        return found

    def open_value_signals(self) -> list[Signal]:
        """Find two values of one attribute that are in no table: kept in the shed, in the loft."""
        older, newer = self.older, self.newer
        for name in (name for name in older.attributes if name in newer.attributes):
            if name not in _VALUE_PREPOSITIONS:
                continue
            mine = _value_words(older, name)
            theirs = _value_words(newer, name)
            if not mine or not theirs or mine & newer.keys.keys() or theirs & older.keys.keys():
                continue
            reason = f"different {name}: {' '.join(sorted(mine))} / {' '.join(sorted(theirs))}"
            words = frozenset(mine | theirs) | self._attribute_words(name)
            return [Signal("value", reason, words)]
        return []

    def replacement_signals(self) -> list[Signal]:
        """Find a change that the newer text states of the older one's statement."""
        older, newer = self.older, self.newer
        if "replacement" not in newer.cues or "replacement" in older.cues:
            return []
        if not self.topics - self.older.people or any(
            agree(one, other)
            for one, other in product(older.quantities, newer.quantities)
            if comparable(one, other)
        ):
            return []
        return [Signal("change", "the newer one tells of a change")]

    def _attribute_words(self, name: str) -> frozenset[str]:
        return frozenset(
            reading.tokens[reading.attributes[name]].lexeme.key
            for reading in (self.older, self.newer)
        )

    @staticmethod
    def _values(one: Reading, other: Reading, position: int) -> list[str]:
        return [
            key
            for key, place in one.names.items()
            if place > position
            and key not in other.keys
            and key not in one.people
            and one.clauses[place] == one.clauses[position]
        ]

    def preference_signals(self) -> list[Signal]:
        """Find preferences that the other text reverses."""
        older, newer = self.older, self.newer
        turned = (older.preferred & newer.dispreferred) | (older.dispreferred & newer.preferred)
        if turned and not older.preferred & newer.preferred:
            return [Signal("preference", f"preference turned around: {' '.join(sorted(turned))}")]
        return []


_BEFORE_AFTER = frozenset({"before", "after", "prior to", "follow", "following"})
_CONVERSE = frozenset(
    stem(word)
    for word in vocabulary.listed(
        "above below more less beat lose win buy sell give receive lend borrow over"
    )
)
# They turn a word into its opposite, where both are words of the two texts.
_OPPOSING_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "mis")
_STEM = 3  # letters of a word that a prefix turns around
_SHORT = 3
# The prepositions that lead to the value of an attribute.
_VALUE_PREPOSITIONS = {
    "home": vocabulary.words("in to near with"),
    "work": vocabulary.words("as at for by"),
    "store": vocabulary.words("in on under behind at to with inside beside"),
    "school": vocabulary.words("at in"),
    "lead": vocabulary.words("by"),
}


def _described(reading: Reading, position: int) -> str:
    """Return the key of the noun that a word stands before and describes, or an empty text."""
    if position + 1 >= len(reading.tokens):
        return ""
    token, following = reading.tokens[position], reading.tokens[position + 1]
    if following.kind != "word" or following.lexeme.is_stop or following.is_capital:
        return ""
    if token.lexeme.is_verb or (following.lexeme.is_verb and position < reading.first_verb):
        return ""
    return following.lexeme.key


def _value_words(reading: Reading, name: str) -> set[str]:
    """Return the keys after an attribute and a preposition that leads to its value."""
    position = reading.attributes[name]
    prepositions = _VALUE_PREPOSITIONS[name]
    is_value = not prepositions.isdisjoint(reading.tokens[position].text.split())
    found: set[str] = set()
    for place in range(position + 1, len(reading.tokens)):
        token = reading.tokens[place]
        if reading.clauses[place] != reading.clauses[position] or len(found) > _SHORT:
            break
        if token.text in prepositions:
            if found and is_value:
                break
            is_value = True
            found.clear()
        elif is_value and token.kind == "word" and not token.lexeme.is_stop:
            if token.lexeme.cues and not reading.keys.get(token.lexeme.key):
                continue
            found.add(token.lexeme.key)
        elif token.text in vocabulary.PREPOSITIONS and found:
            break
    return found if is_value else set()


def _compares(word: str) -> bool:
    """Return whether a word compares its subject with another: older than, before, above."""
    return stem(word) in _CONVERSE or word in _BEFORE_AFTER or word.endswith("er")


def _mentioned(reading: Reading) -> set[str]:
    return reading.keys.keys() | reading.people


def comparable(one: Quantity, other: Quantity) -> bool:
    """Return whether two quantities measure or count the same."""
    if one.kind != other.kind or one.per != other.per:
        return False
    if one.kind == "date":
        return any(
            a is not None and b is not None for a, b in zip(one.fields, other.fields, strict=True)
        )
    if one.nouns and other.nouns and one.nouns.isdisjoint(other.nouns):
        return one.kind == "count" and not (
            one.nouns.isdisjoint(_PEOPLE) or other.nouns.isdisjoint(_PEOPLE)
        )
    return True
