"""Embeddings and stores that the tests share."""

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.mnemic import MnemicStore

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Letters(Embeddings):
    """The number of each letter: texts of the same letters have a cosine of 1."""

    def embed_documents(self, texts):
        return [[text.lower().count(letter) + 1e-3 for letter in LETTERS] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


INDEX = {"dims": len(LETTERS), "embed": Letters(), "fields": ["text"]}


@pytest.fixture
def index():
    return INDEX


@pytest.fixture
def store(tmp_path):
    with MnemicStore.from_conn_string(str(tmp_path / "store.db"), index=INDEX) as opened:
        yield opened
