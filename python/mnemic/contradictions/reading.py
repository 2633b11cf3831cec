"""Records of what a text says, for comparison with many others."""

from itertools import pairwise

import msgspec

from mnemic.contradictions.quantity import Quantity
from mnemic.contradictions.tokens import FULL_STOP, Token

SUBJECT_KEY = "user"
"""The key of "I" and of the user."""


class Slots(msgspec.Struct, gc=False):
    """What a text fills in.

    Attributes:
        attributes: By attribute, the position of the word that tells it.
        values: By kind of values, its members and their positions.
        qualifiers: By kind of qualifiers, its members and their positions.
    """

    attributes: dict[str, int] = msgspec.field(default_factory=dict)
    values: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    qualifiers: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)


class Entities(msgspec.Struct, gc=False):
    """Persons and named things of a text.

    Attributes:
        me: Key of the person of "I".
        people: Names (and the first person) that a sentence is about.
        weak_people: Words that are a name only if nothing else is.
        names: All words that begin with a capital letter inside a sentence.
    """

    me: str = SUBJECT_KEY
    people: set[str] = msgspec.field(default_factory=set)
    weak_people: set[str] = msgspec.field(default_factory=set)
    names: dict[str, int] = msgspec.field(default_factory=dict)


class Negation(msgspec.Struct, gc=False):
    """A negator and what it covers.

    Attributes:
        position: Position of the negator.
        opposites: Axis, sign and position of the opposites that it covers, in order.
        keys: Keys of the content words that it covers.
    """

    position: int
    opposites: list[tuple[int, int, int]] = msgspec.field(default_factory=list)
    keys: list[str] = msgspec.field(default_factory=list)

    def turned_axes(self) -> frozenset[int]:
        """Return the axes of the first opposite, which is the one that is turned around."""
        return frozenset(
            axis for axis, _, position in self.opposites if position == self.opposites[0][2]
        )


class Polarity(msgspec.Struct, gc=False):
    """What a text affirms and denies.

    Attributes:
        affirmed: Keys that occur without a negation.
        negated: Keys that a negation covers.
        negations: The negations in order.
        axes: By axis, the opposites found, as pairs of sign and position; negation turns the sign.
    """

    affirmed: set[str] = msgspec.field(default_factory=set)
    negated: set[str] = msgspec.field(default_factory=set)
    negations: list[Negation] = msgspec.field(default_factory=list)
    axes: dict[int, list[tuple[int, int]]] = msgspec.field(default_factory=dict)


class Predicate(msgspec.Struct, gc=False):
    """The main verb of a text and its subject.

    Attributes:
        first_verb: Position of the first verb, -1 without.
        verb: Key of the main verb, empty without.
        head: Key of the head of its subject, empty without.
        subjects: Keys of the whole subject.
        is_passive: Whether a form of "be" stands before the verb.
        is_past: Whether the verb is in the past tense.
    """

    first_verb: int = -1
    verb: str = ""
    head: str = ""
    subjects: set[str] = msgspec.field(default_factory=set)
    is_passive: bool = False
    is_past: bool = False


class Preference(msgspec.Struct, frozen=True, gc=False):
    """Keys of what is preferred, and of what it is preferred to."""

    preferred: frozenset[str] = frozenset()
    dispreferred: frozenset[str] = frozenset()


class Reading(msgspec.Struct, gc=False):
    """A parsed text.

    Attributes:
        tokens: Its tokens, without those of questions.
        quantities: Its numbers, dates and times.
        clauses: The number of the clause of each token.
        cues: Cues of tense, plan, exception, change and the like.
        keys: Content words by key, with the position of the first.
        stems: Their stems, with the position of the first.
        objects: By preposition, the keys after it.
        slots: Attributes, values and qualifiers.
        entities: Persons and names.
        polarity: What is affirmed and denied.
        predicate: Main verb and subject.
        case: Keys of what it depends on: if it rains.
        preference: What is preferred to what.
    """

    tokens: list[Token]
    quantities: list[Quantity]
    clauses: list[int] = msgspec.field(default_factory=list)
    cues: set[str] = msgspec.field(default_factory=set)
    keys: dict[str, int] = msgspec.field(default_factory=dict)
    stems: dict[str, int] = msgspec.field(default_factory=dict)
    objects: dict[str, set[str]] = msgspec.field(default_factory=dict)
    slots: Slots = msgspec.field(default_factory=Slots)
    entities: Entities = msgspec.field(default_factory=Entities)
    polarity: Polarity = msgspec.field(default_factory=Polarity)
    predicate: Predicate = msgspec.field(default_factory=Predicate)
    case: set[str] = msgspec.field(default_factory=set)
    preference: Preference = Preference()

    @property
    def is_many_valued(self) -> bool:
        """Whether what is said may hold of several things at once."""
        return not self.cues & {"exception", "exclusive"} and any(
            token.lexeme.is_many_valued
            and not (token.stem == "have" and following.lexeme.is_verb)  # has moved
            for token, following in pairwise([*self.tokens, FULL_STOP])
        )
