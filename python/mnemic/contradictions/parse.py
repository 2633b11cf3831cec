"""Shallow parsing of a text: clauses, negations, names, content words, values."""

from itertools import islice

from mnemic.contradictions import vocabulary
from mnemic.contradictions.measures import quantities_of
from mnemic.contradictions.reading import SUBJECT_KEY, Entities, Negation, Preference, Reading
from mnemic.contradictions.tokens import FULL_STOP, SENTENCE_ENDS, Token, tokens_of
from mnemic.contradictions.vocabulary import Lexeme, stem

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


AUXILIARIES = vocabulary.PARTS["auxiliaries"]
_FINITE = vocabulary.words("is are was were has had will can may must should would")
_PAST = frozenset({"was", "were", "had", "did"})
_DETERMINERS = vocabulary.words("the a an my our your his her its their this that no every each")
_NOBODY = frozenset({"nobody", "no one", "none", "nothing"})


def is_determined(tokens: list[Token], position: int) -> bool:
    """Return whether a determiner or a possessive stands before a word."""
    before = tokens[position - 1] if position else None
    return before is not None and (before.is_possessive or before.text in _DETERMINERS)


def is_predicate(tokens: list[Token], position: int) -> bool:
    """Return whether a word that may be a verb is one here, not a noun."""
    following = tokens[position + 1] if position + 1 < len(tokens) else None
    if following and following.text in _FINITE:
        return False
    if position == 0:  # an order, or the name of a thing
        is_phrase = " " in tokens[0].text
        return is_phrase or (following is not None and following.lexeme.is_stop)
    return not is_determined(tokens, position)


class _SubjectReader:
    """Reads the words up to the main verb; those of the subject are candidates until it comes."""

    def __init__(self, reading: Reading, quantified: set[int]) -> None:
        self._reading = reading
        self._predicate = reading.predicate
        self._me = reading.entities.me
        self._quantified = quantified
        self._candidates: list[str] = []
        self._head = ""
        self._in_prepositional_phrase = False
        self._has_auxiliary = False

    def read(self) -> None:
        for position, token in enumerate(self._reading.tokens):
            if token.kind != "word":
                if token.text in SENTENCE_ENDS and self._candidates:
                    break
                self._in_prepositional_phrase &= token.text != ","
            elif position in self._quantified or (position == 0 and self._me != SUBJECT_KEY):
                continue  # a quantity, or a label
            elif self._is_end(position, token):
                break
        if not self._predicate.verb and self._has_auxiliary:
            self._predicate.verb = "be"
        cues = self._reading.cues
        if self._predicate.is_past and "end" in cues and "change" not in cues:
            cues.add("past")
        if self._predicate.verb and self._head:
            self._record_subject()

    def _is_end(self, position: int, token: Token) -> bool:
        """Take a word in, and return whether the main verb or its complement is reached."""
        lexeme = token.lexeme
        is_preposition = token.text in vocabulary.PREPOSITIONS
        if token.text in AUXILIARIES and (self._candidates or not position):
            self._take_auxiliary(token)
        elif self._is_main_verb(position, token):
            self._take_verb(token)
            return True
        elif lexeme.is_negator or (lexeme.is_stop and not is_preposition):
            if lexeme.is_first_person and not self._candidates:
                self._take_noun(token)
        elif self._has_auxiliary:
            return True
        elif is_preposition:
            self._in_prepositional_phrase = bool(self._candidates)
        elif not self._in_prepositional_phrase:
            self._take_noun(token)
        return False

    def _is_main_verb(self, position: int, token: Token) -> bool:
        return (
            token.lexeme.is_verb
            and bool(self._candidates)
            and is_predicate(self._reading.tokens, position)
        )

    def _take_auxiliary(self, token: Token) -> None:
        self._has_auxiliary = True
        self._predicate.is_passive |= token.stem == "be"
        self._predicate.is_past = token.text in _PAST

    def _take_verb(self, token: Token) -> None:
        self._predicate.verb = token.lexeme.key
        is_past = token.text.partition(" ")[0].endswith("ed")
        self._predicate.is_past |= is_past and not self._has_auxiliary

    def _take_noun(self, token: Token) -> None:
        self._head = self._me if token.lexeme.is_first_person else token.lexeme.key
        if len(token.text) == 1 and f"{token.text}!" in self._reading.keys:
            self._head = f"{token.text}!"
        self._candidates.append(self._head)

    def _record_subject(self) -> None:
        found = self._predicate
        found.subjects.update(key for key in self._candidates if key in self._reading.keys)
        found.subjects.update(
            f"#{quantity.low}"
            for quantity in self._reading.quantities
            if quantity.kind == "rank" and quantity.end <= found.first_verb
        )
        if self._reading.tokens[0].text not in _NOBODY:
            found.head = self._head


_BREAKS = frozenset(".!?;,:()\u2013\u2014")
_LABEL_LENGTH = 3  # "Ben:", "Aunt May:"
_PERSON_VERBS = frozenset(stem(verb) for verb in vocabulary.PERSON_VERBS)
_CONDITIONS = frozenset({"if", "when", "whenever", "unless", "once", "until"})
_CONNECTIVES = _CONDITIONS | vocabulary.CONJUNCTIONS | vocabulary.PREPOSITIONS
_ABSTRACT = tuple(vocabulary.listed("s ing ion ment ness ity ship ism graphy logy ance ence age"))
_DOUBLING = frozenset({"not", "never", "no", "without", "unless"})
_CANCELLING = frozenset({"without", "unless"})
_REMINDING = vocabulary.words("forget mind hesit doubt")  # denied: don't forget to, don't mind
_ENDING = frozenset({"stop", "quit", "ceas", "refus", "fail", "forget"})
_TOPICAL_CUES = frozenset({"change", "denial", "exclusive", "replacement"})
_EQUALS = frozenset({"is", "are", "was", "were"})
_ADVERBS_OF_TIME = frozenset({"before", "earlier"})  # at the end of a clause
_PARTICLES = vocabulary.words("on off up down over for back")
_STATE_VERBS = vocabulary.PARTS["state verbs"]
_AFTER_PARTICLES = vocabulary.words("in for again now by at during since and after this")


def parse(text: str) -> Reading:
    """Return what a text says."""
    tokens = _without_questions(tokens_of(text))
    reading = Reading(tokens, quantities_of(tokens), entities=Entities(_speaker(tokens)))
    quantified = {
        position
        for quantity in reading.quantities
        for position in range(quantity.start, quantity.end)
    }
    _WordReader(reading, quantified).read()
    _SubjectReader(reading, quantified).read()
    negators = {negation.position for negation in reading.polarity.negations}
    reading.preference = preference_of(tokens, negators)
    return reading


def _without_questions(tokens: list[Token]) -> list[Token]:
    if all(token.text != "?" for token in tokens):
        return tokens
    kept: list[Token] = []
    sentence: list[Token] = []
    for token in tokens:
        sentence.append(token)
        if token.text in SENTENCE_ENDS:
            if token.text != "?":
                kept += sentence
            sentence = []
    return kept + sentence


def _speaker(tokens: list[Token]) -> str:
    """Return the key of "I": the name before a colon, else the user's."""
    if len(tokens) > 1 and tokens[1].text == ":" and tokens[0].is_capital:
        lexeme = tokens[0].lexeme
        if not (lexeme.is_verb or lexeme.is_stop or lexeme.values):
            return lexeme.key
    return SUBJECT_KEY


class _WordReader:
    """Reads the words once, and keeps what holds where it stands.

    A clause ends at a mark or a conjunction, and with it the scope of a negator and of a
    preposition.
    """

    def __init__(self, reading: Reading, quantified: set[int]) -> None:
        self._reading = reading
        self._tokens = [*reading.tokens, FULL_STOP]  # so that every word has one after it
        self._slots = reading.slots
        self._entities = reading.entities
        self._polarity = reading.polarity
        self._predicate = reading.predicate
        self._quantified = quantified
        self._clause = 0
        self._negator = -1
        self._preposition = ""
        self._is_sentence_start = True
        self._condition = ""

    def read(self) -> None:
        for position, token in enumerate(self._reading.tokens):
            if token.kind == "word":
                self._read_word(position, token)
            else:
                self._read_mark(position, token)
        self._turn_opposites()

    def _read_mark(self, position: int, token: Token) -> None:
        if token.text in _BREAKS:
            self._end_clause()
            self._condition = ""
            self._is_sentence_start |= token.text != ","
        elif token.kind == "place":
            self._slots.values.setdefault("address", {}).setdefault(token.text, position)
        self._reading.clauses.append(self._clause)

    def _end_clause(self) -> None:
        self._clause += 1
        self._negator = -1
        self._preposition = ""

    def _read_word(self, position: int, token: Token) -> None:
        lexeme = token.lexeme
        if token.text in _CONNECTIVES:
            self._take_connective(token.text)
        self._reading.clauses.append(self._clause)
        if lexeme.cues:
            self._take_cues(position, token)
        is_cancelling = self._take_negator(position, token)
        if lexeme.axes and not is_cancelling:
            self._take_opposites(position, token)
        for attribute in lexeme.attributes:
            self._slots.attributes.setdefault(attribute, position)
        if position not in self._quantified:
            self._read_unquantified(position, token)
        self._is_sentence_start = False

    def _read_unquantified(self, position: int, token: Token) -> None:
        lexeme = token.lexeme
        if lexeme.values or lexeme.qualifiers:
            self._take_values(position, lexeme)
        self._take_content(position, token)
        if token.text in _EQUALS:
            self._take_copula(position)
        elif token.text in _ADVERBS_OF_TIME and self._tokens[position + 1].kind == "mark":
            self._reading.cues.add("past")

    # Clauses, cues and negations

    def _take_connective(self, word: str) -> None:
        if word in _CONDITIONS:
            self._condition = word
        if word in vocabulary.CONJUNCTIONS:
            self._end_clause()
        if word in vocabulary.PREPOSITIONS:
            self._preposition = word

    def _take_cues(self, position: int, token: Token) -> None:
        if token.text != "only" or not is_determined(self._tokens, position):
            self._reading.cues |= token.lexeme.cues

    def _take_negator(self, position: int, token: Token) -> bool:
        """Open the scope of a negator; return whether it cancels another: not without."""
        is_doubled = 0 <= self._negator < position - 1
        is_reminder = token.stem in _REMINDING and self._negator >= 0
        if is_reminder or (is_doubled and token.text in _CANCELLING):
            self._negator = -1
            self._polarity.negations.pop()
            return True
        if token.lexeme.is_negator and not self._is_pseudo_negation(position, token):
            if is_doubled and token.text in _DOUBLING:
                self._negator = -1
            else:
                self._negate(position)
        elif token.lexeme.key in _ENDING and self._tokens[position + 1].text.endswith("ing"):
            self._negate(position)  # stopped smoking
        return False

    def _is_pseudo_negation(self, position: int, token: Token) -> bool:
        """Return whether a negator negates nothing here: No, ...; not all; not only."""
        following = self._tokens[position + 1].text
        if token.text == "no":
            return following in _BREAKS
        return token.text == "not" and following in {"all", "every", "only", "just", "everyone"}

    def _negate(self, position: int) -> None:
        self._negator = position
        self._polarity.negations.append(Negation(position))

    # Opposites

    def _take_opposites(self, position: int, token: Token) -> None:
        if position in self._quantified or not self._is_opposable(position, token):
            return
        is_negated = 0 <= self._negator < position and not self._is_described(position)
        for axis, sign in token.lexeme.axes:
            if is_negated:
                self._polarity.negations[-1].opposites.append((axis, sign, position))
            else:
                self._polarity.axes.setdefault(axis, []).append((sign, position))

    def _is_opposable(self, position: int, token: Token) -> bool:
        """Return whether a particle is a state, "is on", not a preposition, "on Monday"."""
        if token.text not in _PARTICLES:
            return True
        if not position or self._tokens[position - 1].text not in _STATE_VERBS:
            return False
        following = self._tokens[position + 1]
        return token.text == "for" or following.kind == "mark" or following.text in _AFTER_PARTICLES

    def _is_described(self, position: int) -> bool:
        """Return whether a negated word is only described: no new members, not denied to be new."""
        negator = self._tokens[self._negator].text
        return negator in {"no", "without", "none"} and self._is_before_noun(position)

    def _is_before_noun(self, position: int) -> bool:
        following = self._tokens[position + 1]
        return following.kind == "word" and not following.lexeme.is_stop

    def _turn_opposites(self) -> None:
        """Turn the first opposite around that each negation covers, and the one after it."""
        for negation in self._polarity.negations:
            for axis, sign, position in negation.opposites:
                first = negation.opposites[0][2]
                is_next = position == first + 1 and not self._is_before_noun(position)
                turned = -sign if position == first or is_next else sign
                self._polarity.axes.setdefault(axis, []).append((turned, position))

    # Content words

    def _take_values(self, position: int, lexeme: Lexeme) -> None:
        slots = self._slots
        for kind, member in lexeme.values:
            slots.values.setdefault(kind, {}).setdefault(member, position)
        for kind, member in lexeme.qualifiers:
            slots.qualifiers.setdefault(kind, {}).setdefault(member, position)

    def _take_content(self, position: int, token: Token) -> None:
        lexeme = token.lexeme
        if lexeme.is_first_person:
            self._take_first_person(position, token)
        elif _is_only_cue(lexeme):
            return
        elif len(token.text) == 1 and token.is_capital and not self._is_sentence_start:
            self._take_initial(position, token)
        elif not lexeme.is_stop:
            self._take_content_word(position, token)
        elif lexeme.is_verb:
            self._take_verb(position)

    def _take_first_person(self, position: int, token: Token) -> None:
        if self._is_before_verb() or token.text in {"my", "our"}:
            self._entities.people.add(self._entities.me)
        self._reading.keys.setdefault(self._entities.me, position)
        if token.lexeme.is_verb:
            self._take_verb(position)

    def _take_initial(self, position: int, token: Token) -> None:
        """Record a letter that names something: team B."""
        key = token.text + "!"
        self._entities.names.setdefault(key, position)
        self._take_key(key, position, is_affirmed=True)
        if self._is_before_verb():
            self._entities.people.add(key)

    def _take_content_word(self, position: int, token: Token) -> None:
        lexeme = token.lexeme
        if token.is_capital:
            self._take_capital(position, token)
        if lexeme.is_verb and is_predicate(self._reading.tokens, position):
            self._take_verb(position)
        self._take_key(lexeme.key, position, is_affirmed=not self._condition)
        self._reading.stems.setdefault(token.stem, position)
        if 0 <= self._negator < position:
            self._polarity.negations[-1].keys.append(lexeme.key)
        if self._preposition:
            self._reading.objects.setdefault(self._preposition, set()).add(lexeme.key)
            self._preposition = "" if lexeme.is_verb else self._preposition

    def _take_key(self, key: str, position: int, *, is_affirmed: bool) -> None:
        self._reading.keys.setdefault(key, position)
        if self._condition == "if":
            self._reading.case.add(key)
        if 0 <= self._negator < position:
            self._polarity.negated.add(key)
        elif is_affirmed:
            self._polarity.affirmed.add(key)

    def _take_verb(self, position: int) -> None:
        if self._is_before_verb():
            self._predicate.first_verb = position

    def _is_before_verb(self) -> bool:
        return self._predicate.first_verb < 0

    # Names

    def _take_capital(self, position: int, token: Token) -> None:
        lexeme = token.lexeme
        if token.is_possessive or not self._is_sentence_start:
            self._entities.names.setdefault(lexeme.key, position)
            if token.is_possessive or self._is_before_verb():
                self._entities.people.add(lexeme.key)
        elif not lexeme.values and not lexeme.qualifiers:
            self._take_first_word(position, token)

    def _take_first_word(self, position: int, token: Token) -> None:
        """Record a name at the beginning of a sentence, where every word has a capital letter."""
        following = self._tokens[position + 1]
        if self._is_agent(token, following):
            if _is_known(token.lexeme) or (following.text == ":" and position > _LABEL_LENGTH):
                return
            is_strong = following.stem != "be"
            (self._entities.people if is_strong else self._entities.weak_people).add(
                token.lexeme.key
            )
        elif not (following.is_capital or following.text == "and" or following.lexeme.is_verb):
            return
        self._entities.names.setdefault(token.lexeme.key, position)

    @staticmethod
    def _is_agent(token: Token, following: Token) -> bool:
        """Return whether a word is whose words or deeds follow, as a person's name is."""
        if following.text == ":" or following.stem in _PERSON_VERBS:
            return True
        return (
            following.lexeme.is_verb
            and following.text not in AUXILIARIES
            and following.text[-1] in "sdt"
            and not token.text.endswith(_ABSTRACT)
        )

    # Copulas

    def _take_copula(self, position: int) -> None:
        """Record the attribute before a copula: the colour is red."""
        if position and self._is_noun(self._tokens[position - 1]):
            self._slots.attributes.setdefault(self._tokens[position - 1].text, position)
            if self._leads_to_name(position + 1):
                self._slots.attributes.setdefault("home", position)

    @staticmethod
    def _is_noun(token: Token) -> bool:
        return token.kind == "word" and not (token.lexeme.is_stop or token.is_capital)

    def _leads_to_name(self, position: int) -> bool:
        return self._tokens[position].text in {"in", "at"} and self._tokens[position + 1].is_capital


def _is_only_cue(lexeme: Lexeme) -> bool:
    """Return whether a word carries no topic."""
    if lexeme.is_negator or not lexeme.cues:
        return lexeme.is_negator
    return not (lexeme.axes or lexeme.is_verb or lexeme.cues <= _TOPICAL_CUES)


def _is_known(lexeme: Lexeme) -> bool:
    return lexeme.is_verb or bool(lexeme.cues) or bool(lexeme.axes)
