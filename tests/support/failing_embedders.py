"""An embedder that fails when it is told to, and notes its calls."""

from tests.support.embedders import WordEmbedder


class FailingEmbedder(WordEmbedder):
    """`WordEmbedder` that fails while it is down, and always on texts with a word in them."""

    def __init__(self, dimensions=64, model="words", *, is_down=False, fails_on=None):
        super().__init__(dimensions, model)
        self.is_down, self.fails_on, self.calls = is_down, fails_on, []

    def embed(self, texts):
        self.calls.append(list(texts))
        if self.is_down or (self.fails_on and any(self.fails_on in text for text in texts)):
            raise ConnectionError("secret of the embedder")
        return super().embed(texts)
