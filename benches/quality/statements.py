"""Questions turned into statements by rules: hypothetical memories without a language model.

English has rules for auxiliaries, question words and the past tense. German and Spanish lose their
question words, Japanese and Chinese their particles. No parser, no dictionary of nouns: where a
subject ends is a guess.
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LEAD_IN = re.compile(
    r"^(?:(?:please|so|and|hey|ok(?:ay)?),?\s+)*"
    r"(?:(?:can|could|would) you (?:please )?(?:tell|remind) (?:me|us)(?: of| about)?|"
    r"(?:do|did) you (?:still )?(?:remember|know)|tell me(?: about)?|remind me(?: of| about)?|"
    r"i wonder|i(?:'d| would) like to know)\s+",
    re.IGNORECASE,
)
OTHER_QUESTION_WORDS = re.compile(
    r"^(?:wer|wen|wem|wann|wo|wohin|wie viele?|wie lange|wie oft|wie|warum|weshalb|wozu|"
    r"welche[rsmn]?|cuándo|dónde|qué|quién(?:es)?|cuál(?:es)?|cuánt[oa]s?|cómo|por qué)\s+",
    re.IGNORECASE,
)
PARTICLES = re.compile("(?:ですか|ますか|でしたか|ましたか|か|吗|呢)$")
KEPT_OF_PARTICLES = {"ですか": "です", "ますか": "ます", "でしたか": "でした", "ましたか": "ました"}

QUESTION_WORDS = _words("what which who whom whose when where why how")
DO = _words("do does did")
AUXILIARIES = DO | _words("is are was were has have had can could will would should may might must")
PRONOUNS = _words("i you he she it we they this that there everyone everybody someone anyone")
DETERMINERS = _words("the a an my your his her its our their these those some any all both each")
JOINS = frozenset(("and", "or", "&"))
NO_NAMES = _words(
    "January February March April May June July August September October November December Monday "
    "Tuesday Wednesday Thursday Friday Saturday Sunday Christmas Easter I I'm I've"
)
INVENTED = {
    "when": "last week",
    "where": "at home",
    "why": "because it helps",
    "how many": "three",
    "how long": "for two weeks",
    "how often": "every week",
}
"""A detail of the kind that is wanted, as a language model would invent one."""

_IRREGULAR = """
be was|become became|begin began|bite bit|blow blew|break broke|bring brought|build built|buy bought
catch caught|choose chose|come came|cost cost|cut cut|deal dealt|do did|draw drew|dream dreamt
drink drank|drive drove|eat ate|fall fell|feed fed|feel felt|fight fought|find found|fly flew
forget forgot|get got|give gave|go went|grow grew|hang hung|have had|hear heard|hide hid|hit hit
hold held|hurt hurt|keep kept|know knew|lead led|learn learned|leave left|lend lent|let let
lie lay|lose lost|make made|mean meant|meet met|pay paid|put put|read read|ride rode|ring rang
rise rose|run ran|say said|see saw|sell sold|send sent|set set|shoot shot|show showed|shut shut
sing sang|sit sat|sleep slept|speak spoke|spend spent|stand stood|steal stole|swim swam|take took
teach taught|tell told|think thought|throw threw|understand understood|wake woke|wear wore|win won
write wrote
"""
MEASURES = re.compile(
    r"^(?:(?:many|much|long|often)(?: of)?|(?:specific )?(?:kinds?|types?|sorts?) of)\b ?",
    re.IGNORECASE,
)
SUBJECTS = {"who": "Someone", "what": "Something", "which": "The"}
REGULAR = _words(
    "ask help need want use work live like love enjoy play start stop try learn plan need receive "
    "recommend suggest prefer mention visit join attend adopt decide move call cook order reach "
    "require ignore fail change happen look seem turn open close cancel finish share offer "
    "describe explain miss travel talk walk watch wait wish hope agree refuse allow last cost"
)
IRREGULAR = dict(pair.split() for pair in re.split(r"[|\n]", _IRREGULAR.strip()))
KNOWN_VERBS = REGULAR | IRREGULAR.keys()


def statement(question: str, *, invents: bool = False) -> str:
    """Return a question as a statement; keywords stay as they are.

    With `invents`, a detail of the wanted kind takes the place of the question word.
    """
    text = LEAD_IN.sub("", question.strip().lstrip("¿¡")).rstrip(" ?!.。？！")  # noqa: RUF001
    stripped = OTHER_QUESTION_WORDS.sub("", text)
    stripped = PARTICLES.sub(lambda found: KEPT_OF_PARTICLES.get(found[0], ""), stripped)
    words = stripped.split() if stripped == text else []
    turned = " ".join(_turned(words, invents=invents)) if words else stripped
    return f"{turned[:1].upper()}{turned[1:]}." if turned else question


def in_first_person(question: str) -> str:
    """Return a question about a person with that person as its speaker.

    The person is a name that follows an auxiliary; a question without one stays as it is.
    """
    words = question.split()
    start = 1 + next(
        (at for at, word in enumerate(words) if word.casefold() in AUXILIARIES), len(words)
    )
    end = start + name_length(words[start:])
    if end == start or start > len(words):
        return question
    named = words[start:end]
    if _is_possessive(named[-1]):
        return " ".join([*words[:start], "my", *words[end:]])
    is_several = any(word in JOINS for word in named)
    verb = words[start - 1]
    if not is_several:
        verb = {"does": "do", "has": "have", "is": "am"}.get(verb.casefold(), verb)
    return " ".join([*words[: start - 1], verb, "we" if is_several else "I", *words[end:]])


def _turned(words: list[str], *, invents: bool) -> list[str]:
    lowered = [word.casefold() for word in words]
    if lowered[0] in AUXILIARIES and len(words) > 2:
        return _inverted(lowered[0], words[1:], [])
    asked = next((at for at, word in enumerate(lowered[:3]) if word in QUESTION_WORDS), None)
    if asked is None:
        return words
    at = next((at for at in range(asked + 1, len(words)) if lowered[at] in AUXILIARIES), None)
    if at is None or at + 1 == len(words):
        return [*words[:asked], *_as_subject(lowered[asked]), *words[asked + 1 :]]
    head = MEASURES.sub("", " ".join(words[asked + 1 : at])).split()
    detail = _detail(lowered, asked) if invents else []
    is_subject = lowered[asked] in {"who", "what"} and not head and lowered[at] not in DO
    if is_subject and not _begins_subject(words[at + 1]):
        return [*_as_subject(lowered[asked]), *words[at:]]
    return [*words[:asked], *_inverted(lowered[at], words[at + 1 :], head), *detail]


def _begins_subject(word: str) -> bool:
    return word.casefold() in PRONOUNS | DETERMINERS or name_length([word]) > 0


def _as_subject(question_word: str) -> list[str]:
    """Return the words in place of a question word that is the subject."""
    return SUBJECTS.get(question_word, "").split()


def _detail(lowered: list[str], at: int) -> list[str]:
    known = INVENTED.get(" ".join(lowered[at : at + 2])) or INVENTED.get(lowered[at])
    return known.split() if known else []


def _inverted(auxiliary: str, words: list[str], head: list[str]) -> list[str]:
    """Return subject, verb, object and the rest of a question that follows an auxiliary."""
    end = subject_length(words)
    subject, rest = words[:end], words[end:]
    if auxiliary not in DO:
        return [*subject, auxiliary, *rest, *head]
    while rest and rest[0].endswith("ly"):
        subject, rest = [*subject, rest[0]], rest[1:]
    if not rest or rest[0].casefold() == "not":
        return [*subject, auxiliary, *rest, *head]
    return [*subject, inflected(rest[0], auxiliary), *head, *rest[1:]]


def subject_length(words: list[str]) -> int:
    """Guess how many of the first words are the subject."""
    named = name_length(words)
    if named:
        return min(named + _is_possessive(words[named - 1]), len(words))
    first = words[0].casefold()
    if first in PRONOUNS:
        return 1
    guess = 2 if first in DETERMINERS else 1
    known = (at for at in range(guess, min(len(words), guess + 6)) if words[at] in KNOWN_VERBS)
    return min(next(known, guess), len(words))


def _is_possessive(word: str) -> bool:
    return word.endswith(("'s", "\u2019s"))


def name_length(words: list[str]) -> int:
    """Count the capitalised words at the start, those joined by "and" included."""
    end = 0
    while end < len(words):
        word = words[end]
        if word[:1].isupper() and word not in NO_NAMES:
            end += 1
            if _is_possessive(word):
                break
        elif end and word in JOINS and words[end + 1 : end + 2] and words[end + 1][:1].isupper():
            end += 1
        else:
            break
    return end


def inflected(verb: str, auxiliary: str) -> str:
    """Return a verb in the form that its auxiliary stood for."""
    if auxiliary == "did":
        return past(verb)
    if auxiliary == "does":
        return {"have": "has", "go": "goes", "do": "does"}.get(verb) or with_s(verb)
    return verb


def past(verb: str) -> str:
    """Return the simple past of an English verb."""
    if verb in IRREGULAR:
        return IRREGULAR[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ied"
    if re.fullmatch(r"[^aeiou]*[aeiou][bdgklmnprt]", verb) and not verb.endswith(("w", "x", "y")):
        return f"{verb}{verb[-1]}ed"
    return f"{verb}ed"


def with_s(verb: str) -> str:
    """Return the third person singular of an English verb."""
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "x", "z", "ch", "sh")) else f"{verb}s"
