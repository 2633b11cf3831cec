"""A naive fused ranking: what the ranking of the core is compared with.

It looks at one row after the other in float64, keeps nothing between two calls and prunes nothing.
It splits texts at what is no letter, digit or underscore, Chinese into pairs of characters, and
stems nothing, so contents and queries are to be of words that stemming leaves alone.
"""

import math
import re
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from mnemic import VectorMap
from mnemic._core import date_ranges
from mnemic.model import AdaptiveShare, MemoryEntry, RecencyCurve, SessionTerms
from mnemic.model.timestamps import to_microseconds
from tests.support.filter_twin import matches

GRAM = 4
DAY = 86_400_000_000
MOST_DAYS = 70
FEWEST_COMMON = 100
LONG = 512
SHORTEST_PASSAGE, LONGEST_PASSAGE = 32, 128
LEAST_TURNS = 2
PRESENT = "now"
PRESENT_SHARE = 0.3
LEAST_SHARE = 20
STOP_WORDS = frozenset({"the", "of", "with", "and", "is", "it", "now"})
ROLES = frozenset({"user", "assistant", "bot"})
FUNCTION_CHARACTERS = frozenset("我的")
RUN = re.compile(r"[\u4e00-\u9fff]+|(?:(?![\u4e00-\u9fff])\w)+")
LABEL = re.compile(r"(\w+): ")


class Row(NamedTuple):
    """One row of an index: its number, its entry, and the vectors of its parts."""

    number: int
    entry: MemoryEntry
    vectors: tuple = ()


class Line(NamedTuple):
    """One row of an answer; `near` is its cosine, None without one, `placed` what it counts as."""

    row: int
    score: float
    components: dict
    near: float | None = None
    placed: float = 0.0


class Match(NamedTuple):
    """What a row by itself has in common with a query; `near` is its cosine, None without one."""

    near: float | None
    words: float
    share: float
    value: float


class Relevance(NamedTuple):
    """What a query makes of a row."""

    value: float
    is_match: bool
    components: dict


def max_share(text):
    """Return the largest share of similarity: whole for Latin letters, .05 for Han, else 0."""
    names = [unicodedata.name(letter) for letter in text if letter.isalpha()]
    latin = sum(name.startswith("LATIN") for name in names)
    if 2 * latin >= len(names):
        return 1.0
    return 0.05 if 2 * sum(name.startswith("CJK") for name in names) >= len(names) - latin else 0.0


def words_of(text):
    return [word for run in RUN.findall(text.casefold()) for word in words_of_run(run)]


def words_of_run(run):
    if len(run) == 1 or not is_unspaced(run):
        return [run]
    return ["".join(pair) for pair in pairwise(run)]


def is_unspaced(word):
    return "\u4e00" <= word[0] <= "\u9fff"


def is_stop_word(word):
    return word in STOP_WORDS or not FUNCTION_CHARACTERS.isdisjoint(word)


def grams_of(word):
    """Return the n-grams of a word; one with a digit shares its own with no other word."""
    marked = f"_{word}_"
    grams = {marked[at : at + GRAM] for at in range(len(marked) - GRAM + 1)}
    return {f"{word} {gram}" for gram in grams} if any(map(str.isdigit, word)) else grams


def unit(vectors):
    """Return vectors, shape (n, dim), scaled as the core keeps them, in float64."""
    if not len(vectors):
        return np.empty((0, 1))
    scaled = VectorMap(np.shape(vectors)[1])
    scaled.replace(np.arange(len(vectors)), np.asarray(vectors, np.float32))
    return scaled.get(np.arange(len(vectors))).astype(np.float64)


def cosine(parts, queries):
    """Return the greatest cosine of the parts of a row with several queries, None without parts."""
    return float(np.max(parts @ queries.T)) if len(parts) else None


class Statistics:
    """Words of all rows of a user, filtered ones too; `cut` gives those of a row."""

    def __init__(self, rows, fields, cut=lambda row: words_of(row.entry.content)):
        words = {row.number: cut(row) for row in rows}
        self.counts = {number: Counter(of_row) for number, of_row in words.items()}
        self.words = words
        self.of_word = Counter(word for counts in self.counts.values() for word in counts)
        self.of_gram = Counter()
        for word, count in self.of_word.items():
            self.of_gram.update(dict.fromkeys(grams_of(word), count))
        tokens = sum(map(len, words.values()))
        self.mean_length = tokens / max(1, len(words))
        half = int(self.mean_length / 2)
        self.passage_length = min(max(SHORTEST_PASSAGE, half), LONGEST_PASSAGE)
        recurring = tokens - sum(self.of_word.values())
        self.k1 = fields.k1
        self.b = min(1, 0.3 + recurring / max(1, tokens)) if fields.b is None else fields.b

    def idf(self, frequency):
        return math.log(1 + (len(self.counts) - frequency + 0.5) / (frequency + 0.5))

    def word_idf(self, word):
        return self.idf(self.of_word[word])

    def gram_idf(self, gram):
        return self.idf(self.gram_rows(gram))

    def gram_rows(self, gram):
        """Return how many rows have words with a gram, a row with two of them counted twice."""
        return min(len(self.counts), self.of_gram[gram])

    def saturated(self, count, words):
        """Return BM25's part of a term that so many words have so often, from 0 to 1."""
        if not count:
            return 0.0
        length = words / self.mean_length
        return count / (count + self.k1 * (1 - self.b + self.b * length))


class Passage(NamedTuple):
    """Words of a row, all or a window of them."""

    counts: Counter
    pairs: Counter
    length: int

    @classmethod
    def of(cls, words):
        return cls(Counter(words), Counter(pairwise(words)), len(words))


class Keywords:
    """A query's words and what they weigh."""

    def __init__(self, statistics, words, fields):
        self.statistics, self.fields = statistics, fields
        self.named = words
        rare = [word for word in self.named if not self.is_common(statistics.of_word[word])]
        self.words = rare or self.named
        others = [word for word in self.named if not is_stop_word(word)]
        self.stop_words = fields.stop_words if others else 1.0
        self.pairs = [pair for pair in pairwise(self.named) if all(map(self.is_known, pair))]
        grams = set().union(*map(grams_of, others or self.named))
        self.grams = {gram for gram in grams if not self.is_common(statistics.gram_rows(gram))}
        self.passages = {}

    def passage(self, number):
        """Return a row's words, or the first window of them whose words score more than all."""
        if number not in self.passages:
            words, length = self.statistics.words[number], self.statistics.passage_length
            starts = range(len(words) - length + 1 if len(words) > LONG else 0)
            windows = [words[at : at + length] for at in starts]
            self.passages[number] = max(map(Passage.of, [words, *windows]), key=self.value)
        return self.passages[number]

    def value(self, part):
        grams = self.by_grams([(part, 1.0)]) if self.fields.char_ngrams else 0.0
        return round(self.by_words([(part, 1.0)]), 6), round(grams, 6)

    def match(self, number, earlier):
        """Return the match of a row, from 0 to 1.

        Args:
            number: The row.
            earlier: The previous turn and the one before that, None where there is none in play.
        """
        fields = self.fields
        shares = fields.words + fields.char_ngrams + fields.bigrams
        if not shares:
            return 0.0
        turns = [(number, 1.0), (earlier[0], fields.previous), (earlier[1], fields.second)]
        turns = [(self.passage(turn), share) for turn, share in turns if turn is not None]
        total = fields.words * self.by_words(turns) + fields.bigrams * self.by_pairs(turns[0][0])
        if fields.char_ngrams:
            total += fields.char_ngrams * self.by_grams(turns)
        return (total / shares) ** self.exponent()

    def exponent(self):
        unspaced = self.fields.unspaced_exponent
        if unspaced is None:
            return self.fields.exponent
        pairs = sum(self.weight(word) for word in self.words if is_unspaced(word))
        share = pairs / (sum(map(self.weight, self.words)) or 1)
        return (1 - share) * self.fields.exponent + share * unspaced

    def by_words(self, turns):
        found = sum(self.weight(word) * self.heard(word, turns) for word in self.words)
        return found / (sum(map(self.weight, self.words)) or 1)

    def by_pairs(self, part):
        saturated = self.statistics.saturated
        found = sum(
            self.pair_weight(pair) * saturated(part.pairs[pair], part.length) for pair in self.pairs
        )
        return found / (sum(map(self.pair_weight, self.pairs)) or 1)

    def by_grams(self, turns):
        total = sum(map(self.statistics.gram_idf, self.grams)) or 1
        found = 0.0
        for word in self.statistics.of_word:
            shared = sum(map(self.statistics.gram_idf, self.grams & grams_of(word)))
            found += shared * self.heard(word, turns) if shared else 0.0
        return min(1.0, found / total)

    def heard(self, word, turns):
        """Return the most that a word counts in a turn and in those before it."""
        saturated = self.statistics.saturated
        return max(share * saturated(part.counts[word], part.length) for part, share in turns)

    def weight(self, word):
        is_seam = is_unspaced(word) and not self.statistics.of_word[word]
        share = self.stop_words if is_seam or is_stop_word(word) else 1.0
        return share * self.statistics.word_idf(word)

    def pair_weight(self, pair):
        return sum(map(self.weight, pair)) / 2

    def is_known(self, word):
        """Return whether a word can be part of a pair: some row has it, and it is looked up."""
        is_looked_up = word in self.words and self.weight(word) > 0
        return is_looked_up and self.statistics.of_word[word] > 0

    def is_common(self, frequency):
        return frequency > max(FEWEST_COMMON, self.fields.max_df * len(self.statistics.counts))


class RankingTwin:
    """Answers as an index that holds these rows should."""

    def __init__(self, rows):
        self.rows = {row.number: row for row in rows}
        self.neighbours = _neighbours(rows)
        self.parts = {row.number: unit(row.vectors) for row in rows}

    def rank(self, wanted, where=None):
        """Return all that matches, best first; the limit is not asked for.

        Args:
            wanted: What the index is asked.
            where: The filter that `wanted.where` was parsed from.
        """
        in_play = [row for row in self.rows.values() if _is_in_play(row, wanted, where)]
        return _Query(self, wanted, in_play).lines()

    def has_asked_for(self, wanted, where=None):
        """Return whether the query asks for any row by its time, its speaker or its role."""
        in_play = [row for row in self.rows.values() if _is_in_play(row, wanted, where)]
        return any(map(_Query(self, wanted, in_play).is_asked_for, in_play))

    def knows_words(self, wanted):
        """Return whether a row of the user has a word of the query."""
        keywords = _Query(self, wanted, []).keywords
        return any(keywords.statistics.of_word[word] > 0 for word in keywords.named)


def _neighbours(rows):
    """Return the rows before and after each one in its session."""
    sessions = {}
    for row in rows:
        if row.entry.session_id is not None:
            sessions.setdefault((row.entry.user_id, row.entry.session_id), []).append(row)
    beside = {row.number: (None, None) for row in rows}
    for turns in sessions.values():
        numbers = [None, *(row.number for row in sorted(turns, key=_turn)), None]
        for before, number, after in zip(numbers, numbers[1:], numbers[2:], strict=False):
            beside[number] = (before, after)
    return beside


def _turn(row):
    entry = row.entry
    return entry.position is None, entry.position or 0, entry.created_at, row.number


def _is_in_play(row, wanted, where):
    entry = row.entry
    return (
        _is_in_scope(row, wanted)
        and entry.id.bytes not in wanted.exclude
        and (where is None or matches(where, entry))
    )


def _is_in_scope(row, wanted):
    entry = row.entry
    has_expired = entry.expires_at is not None and to_microseconds(entry.expires_at) <= wanted.now
    return wanted.scope.has(entry) and not has_expired


def _newest(rows, wanted):
    """Return the time of the newest row in the scope, filtered ones too, None without one."""
    times = [to_microseconds(row.entry.created_at) for row in rows if _is_in_scope(row, wanted)]
    return max(times, default=None)


def _is_of_user(row, scope):
    return scope.all_users or row.entry.user_id == scope.user_id


class _Query:
    """One query over the rows in play."""

    def __init__(self, twin, wanted, in_play):
        self.twin, self.wanted, self.ranking = twin, wanted, wanted.ranking
        self.in_play = {row.number: row for row in in_play}
        self.terms = self.ranking.session if wanted.text is not None else SessionTerms()
        self.is_query = wanted.text is not None or wanted.vectors is not None
        rows_of_user = [row for row in twin.rows.values() if _is_of_user(row, wanted.scope)]
        rarity = self.rarity(rows_of_user)
        self.share = _share(self.ranking.similarity, rows_of_user, rarity)
        self.has_near = wanted.vectors is not None and self.share > 0
        self.has_words = self.is_query and self.share < 1
        fields = self.ranking.keywords
        self.named = self.named_speakers()
        words = self.words_kept()
        self.keywords = Keywords(Statistics(rows_of_user, fields), words, fields)
        self.vectors = unit(wanted.vectors) if self.has_near else None
        self.context = None if wanted.context is None else unit([wanted.context])
        self.matches = {number: self.match(number) for number in self.in_play}
        newest = _newest(twin.rows.values(), wanted)
        self.dates = date_ranges(wanted.text or "", wanted.now, newest)

    def lines(self):
        found = [self.line(row) for row in self.in_play.values()]
        found = [line for line in found if line is not None]
        return sorted(found, key=lambda line: (-line.score, *_newest_first(self.in_play[line.row])))

    def line(self, row):
        """Return a row's line; None if it does not match or is under a floor."""
        relevance = self.relevance(row) if self.is_query else Relevance(0.0, True, {})  # noqa: FBT003
        parts = self.parts(row, relevance.value)
        weights = {name: getattr(self.ranking.weights, name) for name in parts}
        total = sum(weights.values())
        score = sum(weights[name] * part for name, part in parts.items()) / (total or 1)
        wanted, near = self.wanted, self.matches[row.number].near
        floor = wanted.min_similarity
        is_near = floor is None or (near is not None and near >= floor)
        is_worth = wanted.min_score is None or score >= wanted.min_score
        if not (relevance.is_match and is_near and is_worth):
            return None
        shown = {**relevance.components, **parts}
        if "context" in parts and row.vectors:
            shown["context"] = max(0.0, cosine(self.twin.parts[row.number], self.context))
        else:
            shown.pop("context", None)
        if "relevance" in shown:
            shown["relevance"] = min(1.0, max(0.0, shown["relevance"]))
        placed = 0.0 if near is None else self.placed(near)
        near = near if self.has_direction(row.number) else None
        return Line(row.number, score, shown, near, placed)

    def beside(self, number, side, steps):
        """Return the turn so many steps before (side 0) or after (side 1), None if there is none.

        A turn out of play ends the way.
        """
        for _ in range(steps):
            number = self.twin.neighbours[number][side] if number in self.in_play else None
        return number if number in self.in_play else None

    def match(self, number):
        near = cosine(self.twin.parts[number], self.vectors) if self.has_near else None
        words = 0.0
        if self.has_words:
            earlier = [self.beside(number, 0, steps) for steps in (1, 2)]
            words = self.keywords.match(number, earlier)
        share = self.share
        if share < 1 and self.ranking.covered_only:
            share = min(share, max_share(self.in_play[number].entry.content))
        # Nothing but its vector tells the meaning of a memory with an empty content.
        entry = self.in_play[number].entry
        is_turn = entry.session_id is not None and bool(entry.content)
        if share < 1 and self.ranking.full_words and is_turn:
            words_here = len(words_of(entry.content))
            share = min(share, self.share * min(1.0, words_here / self.ranking.full_words))
        placed = 0.0 if near is None else self.placed(near)
        value = share * (placed - self.chunk_term(number)) + (1 - share) * words
        return Match(near, words, share, value)

    def placed(self, near):
        """Return where a cosine is put on the scale, if it is not all that a score is made of."""
        scale, ranking = self.wanted.scale, self.ranking
        others = msgspec.structs.asdict(ranking.weights) | {"relevance": 0.0}
        is_near_alone = (
            (ranking.similarity, ranking.chunk_penalty, ranking.session) == (1.0, 0, SessionTerms())
            and ranking.weights.relevance == 1
            and not any(others.values())
        )
        if scale is None or is_near_alone:
            return near
        stretch = min(8, max(1, 0.12 / scale.spread))
        start = min(0.12, scale.mean)
        place = start + stretch * (near - scale.mean)
        knee = scale.mean + (0.7 - start) / stretch
        if knee >= 1 or start + stretch * (1 - scale.mean) <= 1 or near <= knee:
            return place
        return 0.7 + 0.3 * (near - knee) / (1 - knee)

    def has_direction(self, number):
        """Return whether a row has a vector that is not all zeros, which stand for none."""
        return bool(np.any(self.twin.parts[number]))

    def chunk_term(self, number):
        """Return the part of a cosine that the nearest of several chunks has by chance."""
        chunks = len(self.twin.parts[number]) if self.has_near else 0
        return self.ranking.chunk_penalty * math.log(max(1, chunks))

    def lifting(self, number):
        """Return what a neighbour has to give."""
        return 0.0 if number is None else max(0.0, self.matches[number].value)

    def lift(self, number):
        terms = self.terms
        before, after = self.beside(number, 0, 1), self.beside(number, 1, 1)
        if not self.most_lift():
            return 0.0
        own = terms.min_lift * self.lifting(number)
        if before is None and after is None:
            return max(own, terms.isolated * self.lifting(number))
        first = [terms.previous * self.lifting(before), terms.next * self.lifting(after)]
        if before is not None and self.is_answered(before, number):
            first.append(terms.answer * self.lifting(before))
        second = [self.lifting(self.beside(number, side, 2)) for side in (0, 1)]
        return max(own, max(first) + terms.second_neighbour * max(second))

    def is_answered(self, before, number):
        """Return whether a turn counts as the answer of the one before it."""
        sides = [_side(self.in_play[turn]) for turn in (before, number)]
        is_advice = self.asked_side() == "user" and sides == ["user", "assistant"]
        return "?" in self.in_play[before].entry.content and not is_advice

    def asked_side(self):
        """Return the side of a chat with an assistant that the query is about, None if none counts.

        Queries of the tests are about the assistant where something was "said".
        """
        if not self.terms.role or all(_side(row) != "assistant" for row in self.in_play.values()):
            return None
        return "assistant" if "said" in self.keywords.named else "user"

    def most_lift(self):
        """Return the most that neighbours can add to the match of 1; 0 if nobody has any."""
        terms = self.terms
        has_any = any(
            self.beside(number, side, 1) is not None for number in self.in_play for side in (0, 1)
        )
        lifted = max(terms.previous, terms.next, terms.answer) + terms.second_neighbour
        return max(lifted, terms.isolated, terms.min_lift) * has_any

    def relevance(self, row):
        """Return what the query makes of a row; sessions, dates and speakers need its text."""
        terms, match = self.terms, self.matches[row.number]
        lift, most = self.lift(row.number), 1.0 + self.most_lift()
        has_similarity = match.near is not None and self.has_direction(row.number)
        components = {"similarity": max(0.0, match.near)} if has_similarity else {}
        components |= {"keyword": match.words, "share": match.share} if self.has_words else {}
        components |= {"neighbours": lift} if most > 1 else {}
        value = match.value + lift
        if (terms.date or terms.date_inside) and self.dates:
            inside = terms.date_inside * self.is_inside(row)
            components["date"] = terms.date * self.nearness(row) + inside
            most += terms.date + terms.date_inside
        if terms.speaker and self.named:
            size = terms.speaker * (1 - sum(self.named.values()))
            components["speaker"] = size * (_speaker(row) in self.named)
            most += size
        if (terms.date or terms.date_inside) and PRESENT in self.keywords.named:
            newer = PRESENT_SHARE * self.newness(row) * max(0.0, match.value)
            components["date"] = components.get("date", 0.0) + newer
            most += PRESENT_SHARE
        side, asked = _side(row), self.asked_side()
        if terms.question:
            is_exempt = asked is not None and side == "user"
            components["question"] = -terms.question * (_asks(row) and not is_exempt)
        if asked is not None:
            lost = _part_of_answer(row) if side == "assistant" else 1.0
            components["role"] = -terms.role * (side not in {None, asked}) * lost
        if self.has_near and self.ranking.chunk_penalty:
            components["chunks"] = -match.share * self.chunk_term(row.number)
        bonus = [components.get(name, 0.0) for name in ("date", "speaker", "question", "role")]
        is_match = match.near is not None or match.words > 0 or lift > 0 or self.is_asked_for(row)
        components["relevance"] = (value + sum(bonus)) / most
        return Relevance(components["relevance"], is_match, components)

    def is_asked_for(self, row):
        """Return whether the query asks for a row by its time, its speaker or its role."""
        terms = self.terms
        is_of_time = terms.date + terms.date_inside > 0 and self.is_inside(row)
        is_named = terms.speaker > 0 and _speaker(row) in self.named
        is_answer = self.asked_side() == _side(row) == "assistant"
        return is_of_time or is_named or is_answer

    def nearness(self, row):
        """Return how near a row's creation is to the nearest date of the query, from 0 to 1."""
        created = to_microseconds(row.entry.created_at)
        days = min(max(start - created, created - end, 0) / DAY for start, end in self.dates)
        return math.exp(-days / 7) if days <= MOST_DAYS else 0.0

    def is_inside(self, row):
        created = to_microseconds(row.entry.created_at)
        return any(start <= created < end for start, end in self.dates)

    def rarity(self, rows_of_user):
        """Return the mean idf of known words by that of a word of one row; 1 if none counts."""
        has_sessions = any(row.entry.session_id is not None for row in self.in_play.values())
        statistics = Statistics(rows_of_user, self.ranking.keywords)
        words = [word for word in words_of(self.wanted.text or "") if statistics.of_word[word]]
        if has_sessions or not words:
            return 1.0
        idf = [statistics.word_idf(word) for word in words]
        return sum(idf) / len(idf) / statistics.idf(1)

    def words_kept(self):
        """Return the query's words, without the names of those who have said too much."""
        words = words_of(self.wanted.text or "")
        if not self.ranking.strip_speaker_names:
            return words
        most = self.ranking.max_speaker_share
        return [word for word in words if self.named.get(word, 0) <= most] or words

    def named_speakers(self):
        """Return the share of all turns of each speaker of two rows or more in the query."""
        rows = self.in_play.values()
        spoken = [row for row in rows if row.entry.speaker or row.entry.session_id is not None]
        given = Counter(_speaker(row) for row in spoken if row.entry.speaker)
        labels = Counter(_speaker(row) for row in spoken if not row.entry.speaker)
        counted = {name: n for name, n in labels.items() if n * LEAST_SHARE >= len(spoken)}
        turns = given + Counter(counted)
        heard = {name for name, count in turns.items() if name and count >= LEAST_TURNS}
        named = (heard - ROLES) & set(words_of(self.wanted.text or ""))
        return {name: turns[name] / len(spoken) for name in named}

    def parts(self, row, relevance):
        """Return the parts of the score that have a weight."""
        parts = {
            "recency": self.recency(row),
            "importance": row.entry.importance,
            "access": min(1.0, math.log10(row.entry.access_count + 1) / 3),
            "salience": self.salience(row.entry),
        }
        if self.is_query:
            parts["relevance"] = relevance
        if self.context is not None:
            near = cosine(self.twin.parts[row.number], self.context)
            parts["context"] = 0.0 if near is None else self.placed(near)
        weighed = {name: parts[name] for name in parts if getattr(self.ranking.weights, name)}
        if len(weighed) == 1 and "relevance" in weighed:
            return weighed
        return {name: max(0.0, part) for name, part in weighed.items()}

    def recency(self, row):
        curve, days = self.ranking.recency.curve, self.ranking.recency.days
        if curve is RecencyCurve.NEWEST_RANK:
            return self.newness(row)
        if curve is RecencyCurve.CREATED_LINEAR:
            return max(0.0, 1 - self.age(row.entry.created_at) / days)
        is_by_access = curve is RecencyCurve.ACCESSED_HALF_LIFE
        time = _accessed(row.entry) if is_by_access else row.entry.created_at
        return 0.5 ** (self.age(time) / days)

    def newness(self, row):
        """Return 1 for the newest row in play down to 0, by the number of those that are newer."""
        newer = sum(
            row.entry.created_at < other.entry.created_at for other in self.in_play.values()
        )
        return 1 - newer / max(1, len(self.in_play) - 1)

    def salience(self, entry):
        shares = self.ranking.salience
        frequency = min(1.0, math.log(entry.access_count + 1) / math.log(101))
        total = shares.recency * 0.5 ** (self.age(_accessed(entry)) / 7)
        total += shares.frequency * frequency + shares.importance * entry.importance
        return total / (shares.recency + shares.frequency + shares.importance or 1)

    def age(self, time):
        """Return the days since a time, 0 of one to come."""
        return max(0, self.wanted.now - to_microseconds(time)) / DAY


def _share(similarity, rows, rarity):
    """Return the share of similarity: a number, or by the length of rows and the query's words."""
    if not isinstance(similarity, AdaptiveShare):
        return similarity
    mean = np.mean([len(words_of(row.entry.content)) for row in rows] or [0])
    growth = mean**3 / (mean**3 + similarity.length**3)
    share = similarity.short + (similarity.long - similarity.short) * growth
    common = min(1.0, max(0.0, (0.48 - rarity) / 0.1))
    return share + (similarity.long - share) * common


def _newest_first(row):
    return -to_microseconds(row.entry.created_at), row.entry.id.bytes


def _accessed(entry):
    return entry.created_at if entry.last_accessed_at is None else entry.last_accessed_at


def _speaker(row):
    """Return who said a row, in lower case: as it is given, or by the label of a turn."""
    if row.entry.speaker is not None:
        return row.entry.speaker.casefold()
    label = LABEL.match(row.entry.content) if row.entry.session_id is not None else None
    return label and label[1].casefold()


def _side(row):
    """Return the side of a chat with an assistant: by the role, the speaker, or a turn's label."""
    entry = row.entry
    label = LABEL.match(entry.content) if entry.session_id is not None else None
    name = entry.role or entry.speaker or (label and label[1])
    return {"user": "user", "assistant": "assistant", "bot": "assistant"}.get(
        (name or "").casefold()
    )


def _part_of_answer(row):
    """Return the part of the term of roles that a turn of an assistant loses, by its words."""
    return 0.5 + 0.5 * min(1.0, len(words_of(row.entry.content)) / 200)


def _asks(row):
    return row.entry.session_id is not None and row.entry.content.rstrip().endswith("?")
