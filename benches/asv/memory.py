"""The front door without the embedding: vectors are looked up."""

import shutil
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from benches.asv.vector_map import Timed
from benches.memory import StoredVectors
from mnemic import Memory

COUNT = 5_000


class Front(Timed):
    def setup_cache(self):
        with Memory("search.db", embedder=StoredVectors(COUNT)) as memory:
            memory.add_many(
                {"content": f"memory {number}", "user_id": f"user{number % 10}"}
                for number in range(COUNT)
            )

    def setup(self):
        self.folder = Path(mkdtemp())
        shutil.copy("search.db", self.folder)
        self.path = self.folder / "search.db"
        self.embedder = StoredVectors(COUNT)
        self.memory = Memory(self.path, embedder=self.embedder)
        self.numbers = count()
        self.search()

    def teardown(self):
        self.memory.close()
        shutil.rmtree(self.folder)

    def search(self):
        found = self.memory.search(f"query {next(self.numbers)}", user_id="user3")
        assert len(found) == 10

    def time_search(self):
        self.search()

    def time_add(self):
        self.memory.add(f"memory {next(self.numbers)}", user_id="another")

    def time_open_and_search(self):
        self.memory.close()
        self.memory = Memory(self.path, embedder=self.embedder)
        self.search()

    def peakmem_search(self):
        self.search()
