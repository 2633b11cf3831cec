"""Fingerprints and embeddings."""

from functools import cache

from benches.asv import Timed
from benches.support.datasets import real_texts
from mnemic.embed import MiniLmEmbedder
from mnemic.model import fingerprint, fingerprint_digests

texts = cache(real_texts)
embedder = cache(MiniLmEmbedder)


class Fingerprints(Timed):
    def time_fingerprint(self):
        fingerprint(texts()[0])

    def time_digests_of_a_thousand(self):
        fingerprint_digests(texts()[:1000])


class Embedding(Timed):
    def time_a_sentence(self):
        embedder().embed(texts()[:1])

    def time_sixteen_sentences(self):
        embedder().embed(texts()[:16])

    def peakmem_embedder(self):
        embedder().embed(texts()[:16])
