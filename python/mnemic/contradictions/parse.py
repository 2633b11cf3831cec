"""Shallow parsing of a statement."""

from mnemic.contradictions import vocabulary
from mnemic.contradictions.lexicon import Lexeme, stem
from mnemic.contradictions.quantities import quantities_of
from mnemic.contradictions.tokens import Token, tokens_of

_ENDS = frozenset(".!?;")
_BREAKS = frozenset(".!?;,:()\u2013\u2014")
_AUXILIARY = vocabulary.words(
    "be am is are was were been being have has had do does did will would shall should can could "
    "may might must"
)
_LABEL_LENGTH = 3  # "Ben:", "Aunt May:"
_PREFERENCE_TOKENS = 64  # after "prefer" and its like, so that a run of them takes linear time
_PERSON_VERBS = frozenset(stem(verb) for verb in vocabulary.PERSON_VERBS)
_FINITE = vocabulary.words("is are was were has had will can may must should would")
_CONDITIONS = frozenset({"if", "when", "whenever", "unless", "once", "until"})
_ABSTRACT = (
    "s",
    "ing",
    "ion",
    "ment",
    "ness",
    "ity",
    "ship",
    "ism",
    "graphy",
    "logy",
    "ance",
    "ence",
    "age",
)
_DOUBLING = frozenset({"not", "never", "no", "without", "unless"})
_TOPICAL_CUES = frozenset({"change", "denial", "exclusive", "replacement"})
_EQUALS = frozenset({"is", "are", "was", "were"})
_PARTICLES = vocabulary.words("on off up down over for back")
_STATE_VERBS = vocabulary.words(
    "is are was were be been am m s not still now back turned switched again"
)
_DETERMINERS = vocabulary.words("the a an my our your his her its their this that no every each")
_ENDING = frozenset({"stop", "quit", "ceas", "refus", "fail", "forget"})
_SUBJECT = "user"
SUBJECT_KEY = _SUBJECT


class Reading:
    """A parsed text, for comparison with many others.

    Attributes:
        keys: Content words by key, with the position of the first.
        subjects: Keys before the main verb of each sentence.
        people: Names (and the first person) that a sentence is about.
        names: All words that begin with a capital letter inside a sentence.
        negated: Keys that a negation covers.
        affirmed: Keys that occur without a negation.
        axes: By axis, the words found, as pairs of sign and position.
        values: By class of values, its members and their positions.
        marks: By class of things, its members.
        objects: By preposition, the keys after it.
    """

    __slots__ = (
        "affirmed",
        "attributes",
        "axes",
        "clauses",
        "cues",
        "dispreferred",
        "first_verb",
        "heads",
        "is_many_valued",
        "is_negative",
        "is_passive",
        "is_past",
        "is_question",
        "keys",
        "marks",
        "me",
        "names",
        "negated",
        "negations",
        "objects",
        "people",
        "preferred",
        "quantities",
        "stems",
        "subjects",
        "taken",
        "tokens",
        "values",
        "verb",
        "weak_people",
    )

    def __init__(self, text: str) -> None:
        self.tokens = _without_questions(tokens_of(text))
        self.is_question = not self.tokens
        self.quantities = quantities_of(self.tokens)
        self.keys: dict[str, int] = {}
        self.stems: dict[str, int] = {}
        self.subjects: set[str] = set()
        self.heads: set[str] = set()
        self.people: set[str] = set()
        self.weak_people: set[str] = set()
        self.names: dict[str, int] = {}
        self.negated: set[str] = set()
        self.affirmed: set[str] = set()
        self.negations: list[tuple[int, frozenset[int], list[str]]] = []
        self.axes: dict[int, list[tuple[int, int]]] = {}
        self.values: dict[str, dict[str, int]] = {}
        self.marks: dict[str, dict[str, int]] = {}
        self.objects: dict[str, set[str]] = {}
        self.attributes: dict[str, int] = {}
        self.cues: set[str] = set()
        self.clauses: list[int] = []
        self.preferred: set[str] = set()
        self.dispreferred: set[str] = set()
        self.is_passive = False
        self.is_past = False
        self.verb = ""
        self.me = self._speaker()
        self.first_verb = -1
        self._read()
        self._find_subjects()
        self._find_preference()

    def _read(self) -> None:  # noqa: C901, PLR0912, PLR0915 - one pass, for speed
        taken = self.taken = bytearray(len(self.tokens) + 1)
        for quantity in self.quantities:
            for place in range(quantity.start, quantity.end):
                taken[place] = 1
        clause = 0
        scope = 0  # the negator in force, as position + 1
        preposition = ""
        is_start = True
        is_condition = False
        negations: list[tuple[int, list[tuple[int, int, int]], list[str]]] = []
        for position, token in enumerate(self.tokens):
            text, lexeme = token.text, token.lexeme
            is_doubled = False
            if token.kind not in {"word", "rest"}:
                if text in _BREAKS:
                    clause += 1
                    scope = 0
                    is_condition = False
                    preposition = ""
                    is_start = is_start if text == "," else True
                elif token.kind == "place":
                    self.values.setdefault("address", {}).setdefault(text, position)
                self.clauses.append(clause)
                continue
            if text in _CONDITIONS:
                is_condition = True
            if text in vocabulary.CONJUNCTIONS:
                clause += 1
                scope = 0
                preposition = ""
            self.clauses.append(clause)
            if lexeme.cues and not (text == "only" and self._is_determined(position)):
                self.cues |= lexeme.cues
            if lexeme.is_negator and not self._is_harmless(text, position):
                if scope and scope < position and text in _DOUBLING:
                    scope = 0  # double negation
                    if text in {"without", "unless"}:
                        negations.pop()
                        is_doubled = True
                else:
                    scope = position + 1
                    negations.append((position, [], []))
            elif self._ends_action(lexeme, position):
                scope = position + 1
                negations.append((position, [], []))
            if text in vocabulary.PREPOSITIONS:
                preposition = text
            if (
                lexeme.axes
                and not (taken[position] or is_doubled)
                and self._is_opposable(text, position)
            ):
                for axis, sign in lexeme.axes:
                    if scope and scope != position + 1 and not self._is_described(position, scope):
                        negations[-1][1].append((axis, sign, position))
                    else:
                        self.axes.setdefault(axis, []).append((sign, position))
            for name in lexeme.attributes:
                self.attributes.setdefault(name, position)
            if taken[position]:
                is_start = False
                continue
            for name, member in lexeme.values:
                self.values.setdefault(name, {}).setdefault(member, position)
            for name, member in lexeme.qualifiers:
                self.marks.setdefault(name, {}).setdefault(member, position)
            if lexeme.is_first_person:
                if self.first_verb < 0 or text in {"my", "our"}:
                    self.people.add(self.me)
                self.keys.setdefault(self.me, position)
                if lexeme.is_verb and self.first_verb < 0:
                    self.first_verb = position
            elif text in vocabulary.THIRD_PERSON or _is_only_cue(lexeme):
                pass
            elif len(text) == 1 and token.is_capital and position and not is_start:
                self.names.setdefault(text + "!", position)
                self._mark(text + "!", position, scope)
                if self.first_verb < 0:
                    self.people.add(text + "!")
            elif not lexeme.is_stop:
                if token.is_capital:
                    self._capital(token, position, is_start=is_start)
                if lexeme.is_verb and self.first_verb < 0 and self._is_predicate(position):
                    self.first_verb = position
                self._mark(lexeme.key, position, scope, is_condition=is_condition)
                self.stems.setdefault(token.stem, position)
                if scope and scope != position + 1:
                    negations[-1][2].append(lexeme.key)
                if preposition:
                    self.objects.setdefault(preposition, set()).add(lexeme.key)
                    if lexeme.is_verb:
                        preposition = ""
            elif lexeme.is_verb and self.first_verb < 0:
                self.first_verb = position
            if text in _EQUALS and position and self._is_noun(position - 1):
                self.attributes.setdefault(self.tokens[position - 1].text, position)
                if self._leads_to_name(position + 1):
                    self.attributes.setdefault("home", position)
            if text in {"before", "earlier"} and self._is_last(position):
                self.cues.add("past")
            is_start = False
        for position, axes, keys in negations:
            self._negate(position, axes, keys)
        self.is_negative = "denial" in self.cues
        self.is_many_valued = any(
            token.lexeme.is_many_valued for token in self.tokens
        ) and not self.cues & {"exception", "exclusive"}

    def _speaker(self) -> str:
        """Return the person of "I": the name before a colon, else the user."""
        if len(self.tokens) > 1 and self.tokens[1].text == ":":
            first = self.tokens[0]
            lexeme = first.lexeme
            if first.is_capital and not (lexeme.is_verb or lexeme.is_stop or lexeme.values):
                return lexeme.key
        return _SUBJECT

    def _negate(self, position: int, axes: list[tuple[int, int, int]], keys: list[str]) -> None:
        first = min((place for _, _, place in axes), default=-1)
        for axis, sign, place in axes:
            is_turned = place - first in {0, 1}
            turned = -sign if is_turned else sign
            self.axes.setdefault(axis, []).append((turned, place))
        self.negations.append(
            (position, frozenset(axis for axis, _, place in axes if place == first), keys)
        )

    def _is_harmless(self, text: str, position: int) -> bool:
        """Return whether a negator negates nothing here: No, ...; not all; not only."""
        following = self.tokens[position + 1].text if position + 1 < len(self.tokens) else ","
        if text == "no":
            return following in _BREAKS
        return text == "not" and following in {"all", "every", "only", "just", "everyone"}

    def _ends_action(self, lexeme: Lexeme, position: int) -> bool:
        """Return whether the word negates the action that follows: stopped smoking."""
        if lexeme.key not in _ENDING or position + 1 >= len(self.tokens):
            return False
        return self.tokens[position + 1].text.endswith("ing")

    def _mark(self, key: str, position: int, scope: int, *, is_condition: bool = False) -> None:
        self.keys.setdefault(key, position)
        if scope and scope != position + 1:
            self.negated.add(key)
        elif not is_condition:
            self.affirmed.add(key)

    def _is_predicate(self, position: int) -> bool:
        """Return whether a word that may be a verb is one here, not a noun."""
        if position + 1 < len(self.tokens) and self.tokens[position + 1].text in _FINITE:
            return False
        if position == 0:  # an order, or the name of a thing
            following = self.tokens[1] if len(self.tokens) > 1 else self.tokens[0]
            return " " in self.tokens[0].text or following.lexeme.is_stop
        before = self.tokens[position - 1]
        return not before.is_possessive and before.text not in _DETERMINERS

    def _is_determined(self, position: int) -> bool:
        before = self.tokens[position - 1] if position else None
        return before is not None and (before.is_possessive or before.text in _DETERMINERS)

    def _is_opposable(self, text: str, position: int) -> bool:
        """Return whether a particle is a state, "is on", not a preposition, "on Monday"."""
        if text not in _PARTICLES:
            return True
        before = self.tokens[position - 1].text if position else ""
        if before not in _STATE_VERBS:
            return False
        following = self.tokens[position + 1] if position + 1 < len(self.tokens) else None
        if text in {"for", "against"}:
            return True
        return (
            following is None
            or following.kind == "mark"
            or following.text
            in {"in", "for", "again", "now", "by", "at", "during", "since", "and", "after", "this"}
        )

    def _leads_to_name(self, position: int) -> bool:
        if position + 1 >= len(self.tokens):
            return False
        return self.tokens[position].text in {"in", "at"} and self.tokens[position + 1].is_capital

    def _is_last(self, position: int) -> bool:
        return position + 1 >= len(self.tokens) or self.tokens[position + 1].kind == "mark"

    def _is_noun(self, position: int) -> bool:
        token = self.tokens[position]
        return token.kind == "word" and not (token.lexeme.is_stop or token.is_capital)

    def _is_described(self, position: int, scope: int) -> bool:
        """Return whether a negated word is only described: no new members, not denied to be new."""
        if self.tokens[scope - 1].text not in {"no", "without", "none"}:
            return False
        if position + 1 >= len(self.tokens):
            return False
        following = self.tokens[position + 1]
        return following.kind == "word" and not following.lexeme.is_stop

    def _capital(self, token: Token, position: int, *, is_start: bool) -> None:
        key = token.lexeme.key
        if not is_start:
            self.names.setdefault(key, position)
            if token.is_possessive or self.first_verb < 0:
                self.people.add(key)
            return
        if token.is_possessive:
            self.names.setdefault(key, position)
            self.people.add(key)
            return
        following = self.tokens[position + 1] if position + 1 < len(self.tokens) else None
        if following is None or token.lexeme.values or token.lexeme.qualifiers:
            return
        if following.text == ":" or following.stem in _PERSON_VERBS or self._acts(token, following):
            is_strong = following.text == ":" or following.stem != "be"
            is_known = token.lexeme.is_verb or bool(token.lexeme.cues) or bool(token.lexeme.axes)
            if is_known or (following.text == ":" and position > _LABEL_LENGTH):
                return
            (self.people if is_strong else self.weak_people).add(key)
            self.names.setdefault(key, position)
        elif following.is_capital or following.text in {"and", "'s"} or following.lexeme.is_verb:
            self.names.setdefault(key, position)

    @staticmethod
    def _acts(token: Token, following: Token) -> bool:
        """Return whether an unknown word with a verb after it is a person's name."""
        return (
            following.lexeme.is_verb
            and following.text not in _AUXILIARY
            and following.text[-1] in "sdt"
            and not token.text.endswith(_ABSTRACT)
        )

    def _find_subjects(self) -> None:  # noqa: C901, PLR0912 - one pass, for speed
        """Record the words before the first full verb, and the verb itself."""
        candidates: list[str] = []
        head = ""
        in_phrase = has_auxiliary = False
        for position, token in enumerate(self.tokens):
            lexeme = token.lexeme
            if token.kind not in {"word", "rest"}:
                if token.text in _ENDS and candidates:
                    break
                in_phrase = in_phrase and token.text != ","
                continue
            if self.taken[position] or (position == 0 and self.me != SUBJECT_KEY):
                continue
            if token.text in _AUXILIARY and (candidates or not position):
                has_auxiliary = True
                self.is_passive = self.is_passive or token.stem == "be"
                self.is_past = token.text in {"was", "were", "had", "did"}
            elif lexeme.is_verb and candidates and self._is_predicate(position):
                self.verb = lexeme.key
                self.is_past = self.is_past or (token.text.endswith("ed") and not has_auxiliary)
                break
            elif lexeme.is_negator or (
                lexeme.is_stop and token.text not in vocabulary.PREPOSITIONS
            ):
                if lexeme.is_first_person and not candidates:
                    candidates.append(self.me)
                    head = self.me
            elif has_auxiliary:
                break
            elif token.text in vocabulary.PREPOSITIONS:
                in_phrase = bool(candidates)
            elif not in_phrase or not candidates:
                head = self.me if lexeme.is_first_person else lexeme.key
                if len(token.text) == 1 and f"{token.text}!" in self.keys:
                    head = f"{token.text}!"
                candidates.append(head)
        if not self.verb and has_auxiliary:
            self.verb = "be"
        if self.verb and head:
            self.subjects.update(key for key in candidates if key in self.keys)
            self.subjects.update(
                f"#{quantity.low}"
                for quantity in self.quantities
                if quantity.kind == "rank" and quantity.end <= self.first_verb
            )
            if not self._is_nobody():
                self.heads.add(head)

    def _is_nobody(self) -> bool:
        return bool(self.tokens) and self.tokens[0].text in {"nobody", "no one", "none", "nothing"}

    def _find_preference(self) -> None:
        """Record a preference: prefers A to B, rather A than B, picks A over B."""
        negators = {position for position, _, _ in self.negations}
        for position, token in enumerate(self.tokens):
            if token.stem in {"prefer", "rather", "sooner", "pick", "choos", "favour", "like"}:
                self._split_preference(position, token.stem)
                is_denied = not negators.isdisjoint(range(position - 3, position))
                if self.dispreferred or (token.stem == "prefer" and not is_denied):
                    return
                self.preferred.clear()

    def _split_preference(self, position: int, cue: str) -> None:
        joiners = {"prefer": {"to", "over", "rather than"}, "like": {"more"}}.get(
            cue, {"than", "over"}
        )
        side = self.preferred
        for token in self.tokens[position + 1 : position + 1 + _PREFERENCE_TOKENS]:
            if token.text in _ENDS or token.text == ",":
                break
            if token.text in joiners or (token.text == "than" and side is self.preferred):
                side = self.dispreferred
            elif token.kind == "word" and not token.lexeme.is_stop:
                side.add(token.lexeme.key)


def _is_only_cue(lexeme: Lexeme) -> bool:
    """Return whether a word carries no topic."""
    if lexeme.is_negator:
        return True
    is_topic = bool(lexeme.axes) or lexeme.is_verb or lexeme.cues <= _TOPICAL_CUES
    return bool(lexeme.cues) and not is_topic


def _without_questions(tokens: list[Token]) -> list[Token]:
    if all(token.text != "?" for token in tokens):
        return tokens
    kept: list[Token] = []
    sentence: list[Token] = []
    for token in tokens:
        sentence.append(token)
        if token.text in _ENDS:
            if token.text != "?":
                kept += sentence
            sentence = []
    return kept + sentence
