"""A naive twin of keyword search over memories of several languages.

It reads the languages of all memories again for each query. The detector, the stemmers and the stop
words are the core's; which of them count for a memory or a query is computed here.
"""

from collections import Counter

from mnemic._core import detect_language, tokens
from tests.support.ranking_twin import Statistics

MIN_SHARE = 64
MAX_LANGUAGES = 4


def by_count(counts):
    """Return languages, the most frequent first; ties go to English, then to the first by name."""
    return sorted(counts, key=lambda code: (-counts[code], code != "en", NAMES.index(code)))


NAMES = (
    *("ar", "eu", "ca", "da", "nl", "en", "fi", "fr", "de", "el", "hu", "id", "it", "ne", "no"),
    *("pt", "ro", "ru", "es", "sv", "ta", "tr"),
)


class UserTwin:
    """The languages of one user's memories."""

    def __init__(self, rows):
        found = Counter(detect_language(row.entry.content) for row in rows)
        rounded = 1
        while rounded * 2 <= max(1, len(rows)):
            rounded *= 2
        detected = {code: count for code, count in found.items() if code is not None}
        frequent = {code: n for code, n in detected.items() if n * MIN_SHARE >= rounded}
        self.codes = by_count(frequent)[:MAX_LANGUAGES] or ["en"]

    def of(self, content):
        """Return the language that a memory is analysed in."""
        detected = detect_language(content)
        return detected if detected in self.codes else self.codes[0]


class LanguageTwin:
    """BM25 over the words of rows, each stemmed in its language."""

    def __init__(self, rows):
        self.rows = rows
        users = {row.entry.user_id for row in rows}
        self.users = {user: UserTwin(self.of_user(user)) for user in users}

    def of_user(self, user):
        return [row for row in self.rows if row.entry.user_id == user]

    def code_of(self, row):
        return self.users[row.entry.user_id].of(row.entry.content)

    def scores(self, text, fields, user=None, *, all_users=False):
        """Return the keyword match of each row of a user that has any, by number."""
        rows = self.rows if all_users else self.of_user(user)
        codes = Counter(map(self.code_of, rows))
        present = by_count(codes) or ["en"]
        own = detect_language(text)
        if own in present:
            present.sort(key=lambda code: code != own)
        statistics = Statistics(
            rows, fields, lambda row: tokens(row.entry.content, self.code_of(row))
        )
        words = list(zip(*(tokens(text, code) for code in present), strict=True))
        return self.matches(statistics, [set(alternatives) for alternatives in words])

    def matches(self, statistics, words):
        size = len(statistics.counts)
        found = Counter()
        total = 0.0
        for alternatives in words:
            frequency = sum(statistics.of_word[word] for word in alternatives)
            weight = statistics.idf(min(size, frequency))
            total += weight
            for number, counts in statistics.counts.items():
                shares = (
                    statistics.saturated(counts[word], counts.total()) for word in alternatives
                )
                found[number] += weight * sum(shares)
        return {number: min(1.0, sum_ / total) for number, sum_ in found.items() if sum_ > 0}
