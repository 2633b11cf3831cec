"""Signals: disagreements of two texts, and guards against false ones."""

from collections.abc import Collection
from itertools import pairwise, product
from typing import NamedTuple

from mnemic.contradictions import vocabulary
from mnemic.contradictions.quantity import Quantity, agree
from mnemic.contradictions.reading import SUBJECT_KEY, Reading
from mnemic.contradictions.tokens import Token
from mnemic.contradictions.vocabulary import stem

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
        self.topics = self.shared - {SUBJECT_KEY} - newer.entities.people
        self.topics -= older.entities.people | older.entities.weak_people

    # Guards

    def has_other_people(self) -> bool:
        """Return whether the two are about different persons or named things."""
        one, other = self.older.entities, self.newer.entities
        mine, theirs = one.people, other.people
        if mine & theirs:
            extra, others = mine - theirs, theirs - mine
            return bool(extra and others) and not (extra | others) & {SUBJECT_KEY}
        if not (mine and theirs):
            mine, theirs = mine | one.weak_people, theirs | other.weak_people
        return bool(mine and theirs) and not (
            mine & _mentioned(self.newer) or theirs & _mentioned(self.older)
        )

    def has_other_subject(self, words: frozenset[str]) -> bool:
        """Return whether the two state the same of two different things."""
        mine, theirs = self.older.predicate, self.newer.predicate
        if not mine.head or not theirs.head:
            return False
        if mine.head == theirs.head:
            return self._has_other_modifiers(words)
        if mine.verb != theirs.verb and not {mine.verb, theirs.verb} <= words:
            return False
        is_mine_known = mine.head in self.newer.keys
        is_theirs_known = theirs.head in self.older.keys
        if is_mine_known and is_theirs_known:
            return False
        if mine.is_passive != theirs.is_passive and (is_mine_known or is_theirs_known):
            return False  # the contract is signed; both sides signed the contract
        return mine.verb != "be" or not (is_mine_known or is_theirs_known)

    def _has_other_modifiers(self, words: frozenset[str]) -> bool:
        """Return whether each subject has a word that the other text does not have.

        Words that disagree do not count.
        """
        ignored = words | {SUBJECT_KEY}
        mine = self.older.predicate.subjects - self.newer.keys.keys() - ignored
        theirs = self.newer.predicate.subjects - self.older.keys.keys() - ignored
        return bool(mine and theirs)

    def is_turned_around(self) -> bool:
        """Return whether the two swap the compared things: A before B, B after A."""
        mine, theirs = self.older.predicate.head, self.newer.predicate.head
        is_swapped = mine in self.newer.keys and theirs in self.older.keys
        return is_swapped and mine != theirs and SUBJECT_KEY not in {mine, theirs}

    def has_other_qualifiers(self, words: frozenset[str]) -> bool:
        """Return whether another thing, place, part or time makes both possible."""
        older, newer = self.older, self.newer
        for kind, mine in older.slots.qualifiers.items():
            theirs = newer.slots.qualifiers.get(kind)
            if theirs and mine.keys().isdisjoint(theirs):
                first, second = _first_key(older, mine), _first_key(newer, theirs)
                is_shared = first in newer.keys or second in older.keys
                if not (is_shared or first in words or second in words):
                    return True
        return False

    def has_other_object(self, words: frozenset[str]) -> bool:
        """Return whether a preposition leads to different things in the two."""
        for preposition, mine in self.older.objects.items():
            theirs = self.newer.objects.get(preposition, set())
            first, second = mine - words, theirs - words
            if (
                first
                and second
                and first.isdisjoint(self.newer.keys)
                and second.isdisjoint(self.older.keys)
            ):
                return True
        return False

    def has_narrower_denial(self) -> bool:
        """Return whether one denies a case alone: I eat meat, I don't eat meat on Fridays."""
        return _denies_a_case(self.older, self.newer) or _denies_a_case(self.newer, self.older)

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
        return reading.predicate.first_verb < 0 or quantity.start < reading.predicate.first_verb

    def opposite_signals(self) -> list[Signal]:
        """Find words of opposite ends of an axis, negations taken into account."""
        found: dict[tuple[int, int], Signal] = {}
        is_turned_around = self.is_turned_around()
        for axis, mine in self.older.polarity.axes.items():
            theirs = self.newer.polarity.axes.get(axis, [])
            signs, other_signs = {sign for sign, _ in mine}, {sign for sign, _ in theirs}
            if len(signs) == len(other_signs) == 1 and signs != other_signs:
                places = mine[0][1], theirs[0][1]
                if not (is_turned_around and _compares(self.older.tokens[places[0]].text)):
                    found[places] = self._opposite_signal(*places)
        return list(found.values())

    def _opposite_signal(self, place: int, other_place: int) -> Signal:
        one, other = self.older.tokens[place], self.newer.tokens[other_place]
        reason = f"opposites: {one.text} / {other.text}"
        if one.stem == other.stem:
            reason = f"one denies it: {one.text}"
        words = frozenset({one.lexeme.key, other.lexeme.key})
        return Signal(self._opposite_kind(place, other_place), reason, words)

    def _opposite_kind(self, place: int, other_place: int) -> str:
        older, newer = self.older, self.newer
        if _is_attitude(older.tokens[place]) and _is_attitude(newer.tokens[other_place]):
            mine, theirs = _objects(older, place), _objects(newer, other_place)
            own = min(len(mine - newer.keys.keys()), len(theirs - older.keys.keys()))
            return "qualifier" if own and own >= len(mine & theirs) else "attitude"
        noun, other_noun = _described(older, place), _described(newer, other_place)
        if noun and other_noun:
            is_other = noun not in newer.keys and other_noun not in older.keys
            return "qualifier" if is_other or self._precede_verbs(place, other_place) else "weak"
        return "weak" if older.tokens[place].text in _WEAK_OPPOSITES else "opposite"

    def _precede_verbs(self, place: int, other_place: int) -> bool:
        return (
            place < self.older.predicate.first_verb
            and other_place < self.newer.predicate.first_verb
        )

    def prefix_signals(self) -> list[Signal]:
        """Find words that differ by an opposing prefix: happy, unhappy."""
        found = []
        for one, other in ((self.older, self.newer), (self.newer, self.older)):
            for word in one.stems:
                if word.startswith(_OPPOSING_PREFIXES) and word not in other.stems:
                    found += [
                        Signal("opposite", f"opposites: {base} / {word}", frozenset({word, base}))
                        for base in _bases(word)
                        if base in other.stems
                        and base not in other.polarity.negated
                        and word not in one.polarity.negated
                    ]
        return found

    def negation_signals(self) -> list[Signal]:
        """Find statements of one that the other negates."""
        older, newer = self.older, self.newer
        negations = older.polarity.negations + newer.polarity.negations
        turned = frozenset[int]().union(*(negation.turned_axes() for negation in negations))
        is_turned = not turned.isdisjoint(older.polarity.axes.keys() & newer.polarity.axes.keys())
        if len(negations) % 2 and older.keys.keys() == newer.keys.keys() and not is_turned:
            return [Signal("denial", "one denies what the other says")]
        return _denials(older, newer) + _denials(newer, older)

    def class_signals(self) -> list[Signal]:
        """Find two different values of one kind."""
        found = []
        older, newer = self.older, self.newer
        for name, mine in older.slots.values.items():
            theirs = newer.slots.values.get(name)
            if theirs and mine.keys().isdisjoint(theirs):
                (first, place), (second, other_place) = _first(mine), _first(theirs)
                kind = "qualifier" if self._precede_verbs(place, other_place) else "value"
                words = frozenset({_first_key(older, mine), _first_key(newer, theirs)})
                found.append(Signal(kind, f"different {name}: {first} / {second}", words))
        return found

    def attribute_signals(self) -> list[Signal]:
        """Find two values of one attribute: lives in one town, moved to another."""
        found = []
        for name in self._shared_attributes():
            mine = _named_values(self.older, self.newer, name)
            theirs = _named_values(self.newer, self.older, name)
            if mine and theirs:
                reason = self._different(name, mine, theirs)
                words = frozenset((*mine, *theirs)) | self._attribute_words(name)
                found.append(Signal("attribute", reason, words))
        return found

    def _shared_attributes(self) -> list[str]:
        theirs = self.newer.slots.attributes
        return [name for name in self.older.slots.attributes if name in theirs]

    def open_value_signals(self) -> list[Signal]:
        """Find two values of one attribute that are in no table: kept in the shed, in the loft."""
        older, newer = self.older, self.newer
        for name in self._shared_attributes():
            if name not in _VALUE_PREPOSITIONS:
                continue
            mine, theirs = _value_words(older, name), _value_words(newer, name)
            is_named = not mine.isdisjoint(older.entities.names)  # in Oslo, in an apartment
            are_alike = is_named != theirs.isdisjoint(newer.entities.names)
            is_shared = mine & newer.keys.keys() or theirs & older.keys.keys()
            if mine and theirs and are_alike and not is_shared:
                reason = self._different(name, mine, theirs)
                return [Signal("value", reason, self._attribute_words(name) | mine | theirs)]
        return []

    def replacement_signals(self) -> list[Signal]:
        """Find a change that the newer text states of the older one's statement."""
        older, newer = self.older, self.newer
        if "replacement" not in newer.cues or "replacement" in older.cues:
            return []
        if not self.topics or have_equal_amounts(older, newer):
            return []
        return [Signal("change", "the newer one tells of a change")]

    def _different(self, name: str, mine: Collection[str], theirs: Collection[str]) -> str:
        return f"different {name}: {_texts(self.older, mine)} / {_texts(self.newer, theirs)}"

    def _attribute_words(self, name: str) -> frozenset[str]:
        return frozenset(
            reading.tokens[reading.slots.attributes[name]].lexeme.key
            for reading in (self.older, self.newer)
        )

    def preference_signals(self) -> list[Signal]:
        """Find preferences that the other text reverses."""
        mine, theirs = self.older.preference, self.newer.preference
        turned = mine.preferred & theirs.dispreferred | mine.dispreferred & theirs.preferred
        if turned and not mine.preferred & theirs.preferred:
            return [Signal("preference", f"preference turned around: {' '.join(sorted(turned))}")]
        return []


_BEFORE_AFTER = frozenset({"before", "after", "prior to", "follow", "following"})
_WEAK_OPPOSITES = _BEFORE_AFTER | {"with", "without"}
_CONVERSE = frozenset(map(stem, vocabulary.LISTS["converse"]))
# They turn a word into its opposite, where both are words of the two texts.
_OPPOSING_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "mis")
_STEM = 3  # letters of a word that a prefix turns around
_CASES = vocabulary.words("at in on during after before")
# The prepositions that lead to the value of an attribute.
_VALUE_PREPOSITIONS = {
    "home": vocabulary.words("in to near with"),
    "work": vocabulary.words("as at for by"),
    "store": vocabulary.words("in on under behind at to with inside beside"),
    "school": vocabulary.words("at in"),
    "lead": vocabulary.words("by"),
}


def _first(members: dict[str, int]) -> tuple[str, int]:
    return next(iter(members.items()))


def _first_key(reading: Reading, members: dict[str, int]) -> str:
    """Return the key of the word that tells the first member of a kind."""
    return reading.tokens[_first(members)[1]].lexeme.key


def _texts(reading: Reading, keys: Collection[str]) -> str:
    """Return words as they stand in a text, in its order."""
    return " ".join(
        reading.tokens[place].text for place in sorted(reading.keys[key] for key in keys)
    )


def _bases(word: str) -> list[str]:
    """Return what is left of a word without an opposing prefix."""
    rests = [word[len(prefix) :] for prefix in _OPPOSING_PREFIXES if word.startswith(prefix)]
    return [rest for rest in rests if len(rest) >= _STEM]


def _denies_a_case(one: Reading, other: Reading) -> bool:
    """Return whether a time or place that the other text does not have follows a negation."""
    known = {token.stem for token in other.tokens}
    for negation in one.polarity.negations:
        if "change" in one.tokens[negation.position].lexeme.cues:
            continue  # it stopped then
        start = negation.position + 1
        for place, (token, following) in enumerate(pairwise(one.tokens[start:]), start):
            if (
                token.text in _CASES
                and not following.lexeme.is_stop
                and following.stem not in known
            ):
                return True
            if one.clauses[place] != one.clauses[start - 1] or token.lexeme.is_negator:
                break
    return False


def _denials(one: Reading, other: Reading) -> list[Signal]:
    """Return the negations of one text that cover what the other, without any, affirms."""
    if other.polarity.negations or "denial" in other.cues:
        return []
    found = []
    for negation in one.polarity.negations:
        if not negation.turned_axes().isdisjoint(other.polarity.axes):
            continue  # the negation turned an opposite around
        denied = _denied(one, other, negation.keys)
        if denied and not set(denied) <= one.entities.names.keys():
            verb = frozenset({one.predicate.verb}) & set(denied)
            found.append(Signal("negation", f"one denies it: {_texts(one, denied)}", verb))
    return found


def _denied(one: Reading, other: Reading, keys: list[str]) -> list[str]:
    excluded = one.entities.people | vocabulary.LIGHT_VERBS | one.polarity.affirmed
    return [key for key in keys if key in other.polarity.affirmed and key not in excluded]


def _named_values(one: Reading, other: Reading, attribute: str) -> list[str]:
    """Return the names after an attribute in its clause that the other text does not have."""
    position = one.slots.attributes[attribute]
    return [
        key
        for key, place in one.entities.names.items()
        if place > position
        and key not in other.keys
        and key not in one.entities.people
        and one.clauses[place] == one.clauses[position]
    ]


def _described(reading: Reading, position: int) -> str:
    """Return the key of the noun that a word stands before and describes, or an empty text."""
    if position + 1 >= len(reading.tokens):
        return ""
    token, following = reading.tokens[position], reading.tokens[position + 1]
    if following.kind != "word" or following.lexeme.is_stop or following.is_capital:
        return ""
    is_before_verb = position < reading.predicate.first_verb
    if token.lexeme.is_verb or (following.lexeme.is_verb and is_before_verb):
        return ""
    return following.lexeme.key


def _is_attitude(token: Token) -> bool:
    """Return whether a word says little without its object: hate, fond of, hire."""
    return "attitude" in token.lexeme.cues or (token.lexeme.is_verb and " " not in token.text)


def _objects(reading: Reading, position: int) -> set[str]:
    """Return the keys of what a word leads to: up to the next preposition, or the clause's end."""
    found: set[str] = set()
    for place, token in enumerate(reading.tokens[position + 1 :], position + 1):
        if reading.clauses[place] != reading.clauses[position]:
            break
        if token.text in vocabulary.PREPOSITIONS and token.text != "of" and found:
            break
        if (
            token.lexeme.key in reading.keys
            and not token.lexeme.cues
            and not token.text.endswith("ly")
        ):
            found.add(token.lexeme.key)
    return found


def _value_words(reading: Reading, name: str) -> set[str]:
    """Return the keys after an attribute and a preposition that leads to its value."""
    start = reading.slots.attributes[name]
    for place, token in enumerate(reading.tokens[start:], start):
        if reading.clauses[place] != reading.clauses[start]:
            break
        if not _VALUE_PREPOSITIONS[name].isdisjoint(token.text.split()):
            return _objects(reading, place)
    return set()


def _compares(word: str) -> bool:
    """Return whether a word compares its subject with another: older than, before, above."""
    return stem(word) in _CONVERSE or word in _BEFORE_AFTER or word.endswith("er")


def _mentioned(reading: Reading) -> set[str]:
    return reading.keys.keys() | reading.entities.people


def have_equal_amounts(older: Reading, newer: Reading) -> bool:
    """Return whether the two have an amount in common."""
    return any(
        comparable(one, other) and agree(one, other)
        for one, other in product(older.quantities, newer.quantities)
    )


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
