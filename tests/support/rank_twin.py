"""A naive ranking: what the core's is compared with.

It scores one row at a time in float64, knows no bounds and no cut, and speaks of plain words alone:
its keywords are BM25 of words that the stemmer leaves apart.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

DAY = 86_400e6
FAR_DAYS = 70
"""After ten weeks nearness counts as nothing."""

LEAST_TURNS = 2
"""From so many turns in play on, a name is a speaker's."""


@dataclass
class Row:
    """What is known of one memory; times in microseconds."""

    number: int
    words: tuple[str, ...]
    asks: bool
    user: str | None
    session: str | None
    position: int | None
    speaker: str | None
    created_at: int
    last_accessed_at: int | None
    access_count: int
    expires_at: int | None
    importance: float
    vector: tuple[float, ...] | None


@dataclass
class Asked:
    """What is looked for: `RankRequest` in plain terms."""

    ranking: Any
    now: int
    words: tuple[str, ...] | None
    date: tuple[int, int] | None
    named: str | None
    vectors: Any
    context: Any
    in_play: Any
    in_wall: Any
    min_similarity: float | None = None
    min_score: float | None = None


@dataclass
class Scored:
    """A row, its score and whether it is an answer at all."""

    row: Row
    score: float
    matches: bool


class Twin:
    """Ranks rows.

    Args:
        rows: All rows, in any order.
    """

    def __init__(self, rows):
        self.rows = rows
        self.previous, self.next = {}, {}
        by_session = {}
        for row in rows:
            if row.session is not None:
                by_session.setdefault((row.user, row.session), []).append(row)
        for turns in by_session.values():
            turns.sort(key=_place)
            for before, after in itertools.pairwise(turns):
                self.previous[after.number], self.next[before.number] = before, after

    def ranked(self, asked):
        """Return what is an answer, best first."""
        scored = [one for one in _Asking(self, asked).scored() if one.matches]
        return sorted(scored, key=lambda one: (-one.score, -one.row.created_at, one.row.number))


class _Asking:
    def __init__(self, twin, asked):
        self.twin, self.asked, self.ranking = twin, asked, asked.ranking
        self.play = {row.number: row for row in twin.rows if self._is_in_play(row)}
        self.has_vectors = asked.vectors is not None and self.ranking.similarity > 0
        self.has_query = asked.words is not None or self.has_vectors
        self.session = self.ranking.session if asked.words is not None else None
        self.keywords = self._keywords()
        turns = sum(row.speaker == asked.named for row in self.play.values())
        is_speaker = asked.named is not None and turns >= LEAST_TURNS
        self.is_speaker_named = self.session is not None and self.session.speaker > 0 and is_speaker

    def scored(self):
        return [self._scored(row) for row in self.play.values()]

    def _is_in_play(self, row):
        is_active = row.expires_at is None or row.expires_at > self.asked.now
        return is_active and self.asked.in_play(row)

    def _scored(self, row):
        relevance, worth = self._relevance(row), self._worth(row)
        weights, similarity = self.ranking.weights, self._similarity(row, self.asked.vectors)
        total, score = 0.0, 0.0
        has_context = self.asked.context is not None and weights.context > 0
        has_worth = any(getattr(weights, name) > 0 for name in worth)
        if has_worth or has_context:  # alone, a negative relevance decides the order
            relevance = max(0.0, relevance)
        if self.has_query:
            total, score = weights.relevance, weights.relevance * relevance
        if has_context:
            total += weights.context
            near = _or_zero(self._similarity(row, self.asked.context))
            score += weights.context * max(0.0, near)
        for name, value in worth.items():
            total += getattr(weights, name)
            score += getattr(weights, name) * value
        score /= total or 1.0
        return Scored(row, score, self._is_answer(row, score, similarity))

    def _is_answer(self, row, score, similarity):
        asked = self.asked
        if not self.has_vectors:
            similarity = None
        if asked.min_similarity and (similarity is None or similarity < asked.min_similarity):
            return False
        if asked.min_score is not None and score < asked.min_score:
            return False
        if not self.has_query or similarity is not None:
            return True
        return self._keyword(row) > 0 or self._lift(row) > 0

    def _similarity(self, row, queries):
        if queries is None or row.vector is None:
            return None
        return max(float(_unit(query) @ _unit(row.vector)) for query in queries)

    def _keyword(self, row):
        return self.keywords.get(row.number, 0.0) if self.ranking.similarity < 1 else 0.0

    def _matched(self, row):
        near = _or_zero(self._similarity(row, self.asked.vectors)) if self.has_vectors else 0.0
        share = self.ranking.similarity
        return share * near + (1 - share) * self._keyword(row)

    def _beside(self, neighbours, row):
        found = None if row is None else neighbours.get(row.number)
        return found if found is not None and found.number in self.play else None

    def _positive(self, row):
        return 0.0 if row is None else max(0.0, self._matched(row))

    def _lift(self, row):
        session = self.session
        if session is None:
            return 0.0
        before = self._beside(self.twin.previous, row)
        after = self._beside(self.twin.next, row)
        answered = session.answer if before is not None and before.asks else 0.0
        second = self._positive(self._beside(self.twin.previous, before))
        other = self._positive(self._beside(self.twin.next, after))
        return max(
            max(session.previous, answered) * self._positive(before),
            session.next * self._positive(after),
        ) + session.second * max(second, other)

    def _has_neighbours(self):
        session = self.session
        if session.previous + session.next + session.answer + session.second == 0:
            return False
        return any(self._beside(self.twin.previous, row) for row in self.play.values())

    def _relevance(self, row):
        matched, session = self._matched(row), self.session
        if session is None:
            return matched
        most = 1.0
        if self._has_neighbours():
            most += max(session.previous, session.next, session.answer) + session.second
        relevance = matched + self._lift(row)
        if self.asked.date is not None and session.date > 0:
            most += session.date
            relevance += session.date * _nearness(self.asked.date, row.created_at)
        if self.is_speaker_named:
            most += session.speaker
            relevance += session.speaker * (row.speaker == self.asked.named)
        if row.asks and row.session is not None:
            relevance -= session.question
        return relevance / most

    def _worth(self, row):
        salience, ages = self.ranking.salience, self._age(_last_access(row))
        total = salience.recency + salience.frequency + salience.importance
        sum_of_parts = (
            salience.recency * 2 ** (-ages / 7)
            + salience.frequency * min(1.0, math.log(row.access_count + 1) / math.log(101))
            + salience.importance * row.importance
        )
        return {
            "recency": self._recency(row),
            "importance": row.importance,
            "access": min(1.0, math.log10(row.access_count + 1) / 3),
            "salience": sum_of_parts / total if total else 0.0,
        }

    def _recency(self, row):
        curve, days = self.ranking.recency.curve.value, self.ranking.recency.days
        if curve == "created_linear":
            return max(0.0, 1 - self._age(row.created_at) / days)
        if curve == "created_half_life":
            return 2 ** (-self._age(row.created_at) / days)
        if curve == "accessed_half_life":
            return 2 ** (-self._age(_last_access(row)) / days)
        newer = sum(other.created_at > row.created_at for other in self.play.values())
        return 1 - newer / max(1, len(self.play) - 1)

    def _age(self, time):
        return max(0.0, (self.asked.now - time) / DAY)

    def _keywords(self):
        """Return BM25 with k1 0.9 and b 0.4 of the wall's rows, by the most that it can be."""
        rows = [row for row in self.twin.rows if self.asked.in_wall(row)]
        if self.asked.words is None or not rows:
            return {}
        mean = sum(len(row.words) for row in rows) / len(rows)
        scores, most = dict.fromkeys((row.number for row in rows), 0.0), 0.0
        for word in self.asked.words:
            holders = sum(word in row.words for row in rows)
            idf = math.log(1 + (len(rows) - holders + 0.5) / (holders + 0.5))
            most += idf
            for row in rows:
                count = row.words.count(word)
                scale = 0.9 * (0.6 + 0.4 * len(row.words) / mean) if count else 1.0
                scores[row.number] += idf * count / (count + scale)
        return {number: score / most for number, score in scores.items()} if most else {}


def _place(row):
    return (row.position is None, row.position or 0, row.created_at, row.number)


def _last_access(row):
    return row.created_at if row.last_accessed_at is None else row.last_accessed_at


def _or_zero(value):
    return 0.0 if value is None else value


def _unit(vector):
    vector = np.asarray(vector, dtype=np.float64)
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector


def _nearness(days, time):
    start, end = days
    gap = max(start - time, time - (end - 1), 0) / DAY
    return math.exp(-gap / 7) if gap <= FAR_DAYS else 0.0
