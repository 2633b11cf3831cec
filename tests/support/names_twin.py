"""A naive reading of the speakers that a query names: what the core's is compared with.

It looks at every row of a call again. Names and texts are to be of ASCII letters, and of words that
stemming leaves alone.
"""

import re
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

LEAST_TURNS = 2
FEWEST_ADDRESSES = 3
CLEAR = 0.75
REACH = 4
SHORTEST = 5
ORDINARY = frozenset({"will", "may", "rose", "the", "of", "a", "and"})
DETERMINERS = frozenset({"the", "a"})
ADDRESS = re.compile(r"(?:Hey|Thanks),? ([A-Z][a-z]+)[!.,]")


class Mention(NamedTuple):
    """A run of words of a query, and the speakers that it names."""

    first: int
    count: int
    speakers: frozenset


class NamesTwin:
    """The rows of a call, and the words of its user's memories.

    Args:
        rows: The rows in play.
        heard: All rows of the user.
        neighbours: The numbers of the rows before and after each row in its session.
    """

    def __init__(self, rows, heard, neighbours):
        self.rows = {row.number: row for row in rows}
        self.neighbours = neighbours
        self.words = {word for row in heard for word in words_of(row.entry.content.lower())}
        spoken = [row for row in rows if row.entry.speaker or row.entry.session_id is not None]
        turns = Counter(row.entry.speaker for row in spoken if row.entry.speaker)
        self.turns = {name: count for name, count in turns.items() if count >= LEAST_TURNS}
        self.spoken = len(spoken)

    def share(self, speakers):
        return sum(self.turns[name] for name in speakers) / self.spoken

    def mentions(self, text):
        """Return the mentions in the order of the text; none overlaps another."""
        words, found, at = words_of(text), [], 0
        while at < len(words):
            mention = self.whole(words, at)
            found += [mention] if mention else []
            at += mention.count if mention else 1
        taken = {at for one in found for at in range(one.first, one.first + one.count)}
        for at in set(range(len(words))) - taken:
            speaker = self.first_name(words, at) or self.alias(words, at) or self.near(words, at)
            found += [Mention(at, 1, frozenset({speaker}))] if speaker else []
        return sorted(found)

    def whole(self, words, at):
        """Return the mention of the longest whole name that begins here."""
        standing = [name for name in self.turns if self.stands(name.split(), words, at)]
        longest = max((len(name.split()) for name in standing), default=0)
        standing = [name for name in standing if len(name.split()) == longest]
        if not is_lower(words):
            exact = [name for name in standing if name.split() == words[at : at + longest]]
            standing = exact or standing
        return Mention(at, longest, frozenset(standing)) if standing else None

    def stands(self, name, words, at):
        here = words[at : at + len(name)]
        if here == name:
            return True
        is_free = is_lower(words) or not ORDINARY.issuperset(lowered(name))
        return is_free and not is_determined(words, at) and lowered(here) == lowered(name)

    def beginning(self, word):
        return [name for name in self.turns if lowered(name.split())[0] == word.lower()]

    def first_name(self, words, at):
        """Return the only speaker whose name begins with this word and goes on."""
        word = words[at]
        called = self.beginning(word)
        if len(called) != 1 or len(called[0].split()) == 1 or word.lower() == "the":
            return None
        is_exact = called[0].split()[0] == word
        if word.lower() in ORDINARY:
            return called[0] if is_exact and at > 0 and not is_lower(words) else None
        return called[0] if is_exact or not is_determined(words, at) else None

    def alias(self, words, at):
        """Return the speaker whom nearly all address by this word."""
        word = words[at]
        if word.lower() in ORDINARY or not (word[0].isupper() or is_lower(words)):
            return None
        pairs = [(ADDRESS.match(row.entry.content), row) for row in self.rows.values()]
        rows = [row for match, row in pairs if match and match[1].lower() == word.lower()]
        addressed = [name for name in map(self.addressee, rows) if name]
        (most, count), *_ = [*Counter(addressed).most_common(1), (None, 0)]
        is_clear = count >= CLEAR * len(addressed) and len(addressed) >= FEWEST_ADDRESSES
        return most if is_clear and most in self.turns else None

    def addressee(self, row):
        if row.entry.session_id is None or not row.entry.speaker:
            return None
        return self.other(row, 0) or self.other(row, 1)

    def other(self, row, side):
        """Return the speaker of the next row on a side by somebody else."""
        number = row.number
        for _ in range(REACH):
            number = self.neighbours[number][side]
            if number not in self.rows:
                return None
            speaker = self.rows[number].entry.speaker
            if speaker and speaker != row.entry.speaker:
                return speaker
        return None

    def near(self, words, at):
        """Return the only speaker whose name begins nearly so, if the word has no other sense."""
        word = words[at]
        is_name = word[0].isupper() and len(word) >= SHORTEST and word.lower() not in ORDINARY
        if not is_name or word.lower() in self.words or self.beginning(word):
            return None
        alike = [name for name in self.turns if is_near(name.split()[0].lower(), word.lower())]
        return alike[0] if len(alike) == 1 else None


def words_of(text):
    return re.findall(r"\w+", text)


def lowered(words):
    return [word.lower() for word in words]


def is_lower(words):
    return all(word == word.lower() for word in words)


def is_determined(words, at):
    return at > 0 and words[at - 1].lower() in DETERMINERS


def is_near(one, other):
    if min(len(one), len(other)) < SHORTEST or one[0] != other[0]:
        return False
    one, other = squeezed(one), squeezed(other)
    return one in edited(other) or other in edited(one)


def squeezed(word):
    return word[0] + "".join(after for before, after in pairwise(word) if before != after)


def edited(word):
    """Return all words of the letters a-z with at most one letter edited."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    less = {left + right[1:] for left, right in pieces if right}
    swapped = {left + right[1] + right[0] + right[2:] for left, right in pieces if right[1:]}
    other = {left + one + right[1:] for left, right in pieces if right for one in letters}
    return {word} | less | swapped | other
