"""The predicate of a text: its main verb, and the subject before it."""

from mnemic.contradictions import vocabulary
from mnemic.contradictions.reading import SUBJECT_KEY, Reading
from mnemic.contradictions.tokens import SENTENCE_ENDS, Token

AUXILIARIES = vocabulary.words(
    "be am is are was were been being have has had do does did will would shall should can could "
    "may might must"
)
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


def read_predicate(reading: Reading, quantified: set[int]) -> None:
    """Record the main verb of a text whose words are known, and its subject."""
    _SubjectReader(reading, quantified).read()


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
            elif not self._is_skipped(position) and self._is_end(position, token):
                break
        if not self._predicate.verb and self._has_auxiliary:
            self._predicate.verb = "be"
        if self._predicate.verb and self._head:
            self._record_subject()

    def _is_skipped(self, position: int) -> bool:
        is_label = position == 0 and self._me != SUBJECT_KEY
        return position in self._quantified or is_label

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
        self._predicate.is_past |= token.text.endswith("ed") and not self._has_auxiliary

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
