"""Fingerprints and embeddings."""

from benches.asv.vector_map import Timed
from benches.datasets import real_texts
from mnemic import fingerprint, fingerprint_digests
from mnemic.embed import MiniLmEmbedder


class Fingerprints(Timed):
    def setup(self):
        self.texts = real_texts()[:1000]

    def time_fingerprint(self):
        fingerprint(self.texts[0])

    def time_digests_of_a_thousand(self):
        fingerprint_digests(self.texts)


class Embedding(Timed):
    def setup(self):
        self.embedder = MiniLmEmbedder()
        self.texts = real_texts()[:16]
        self.embedder.embed(self.texts[:1])

    def time_a_sentence(self):
        self.embedder.embed(self.texts[:1])

    def time_sixteen_sentences(self):
        self.embedder.embed(self.texts)

    def peakmem_embedder(self):
        self.embedder.embed(self.texts)
