"""grep over a file a user, a memory a line, as somebody without any library searches.

A query is its words of four letters or more, in any case and inside longer words too. The memory
with most different ones comes first, of equals the earlier.
"""

import os
import re
import subprocess
from collections import defaultdict

from benches.peers.base import KEYWORD

LETTERS = 4
UTF_8 = {**os.environ, "LC_ALL": "C.UTF-8"}
FOUND = re.compile(r"^(\d+):(.*)$", re.MULTILINE)


class Grep:
    name = "grep"
    modes = (KEYWORD,)
    most_rows = 100_000

    def __init__(self, folder, vectors):  # noqa: ARG002 - it has none
        self.folder = folder
        self.rows = defaultdict(list)

    def add(self, rows):
        for row in rows:
            self.rows[row.user].append(row)
        for user, own in self.rows.items():
            lines = [" ".join(row.text.split()) + "\n" for row in own]
            (self.folder / user).write_text("".join(lines), encoding="utf-8")

    def search(self, query, mode):  # noqa: ARG002 - there is one
        rows, words = self.rows[query.user], defaultdict(set)
        for line, word in FOUND.findall(self.matches(query)):
            row = rows[int(line) - 1]
            if query.topic in {None, row.topic}:
                words[row.id].add(word.lower())
        ids = [row.id for row in rows if row.id in words]
        return sorted(ids, key=lambda each: -len(words[each]))[: query.k]

    def matches(self, query):
        """Return each match in a line, after the number of the memory's line."""
        words = {word for word in re.findall(r"\w+", query.text) if len(word) >= LETTERS}
        command = ["grep", "-oniF", "\n".join(words), self.folder / query.user]
        if not words:
            return ""
        return subprocess.run(  # noqa: S603 - its words come from the measured sets
            command, stdout=subprocess.PIPE, text=True, check=False, env=UTF_8
        ).stdout

    def close(self):
        self.rows.clear()
