"""The texts of searches that are awaited together, embedded by one call."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from mnemic.arrays import Float32Array
from mnemic.errors import EmbeddingError
from mnemic.model import Scope
from mnemic.model.search import Search
from mnemic.threads.locks import InnerLock
from mnemic.threads.loop_threads import LoopTurn

Vectors: TypeAlias = list[Float32Array]


class AnnouncedSearch(NamedTuple):
    """A search that a piece of work of an event loop is about to make.

    Attributes:
        embeds: The `QueryVectors` that embed it.
        scope: Its scope.
        search: The request.
    """

    embeds: object
    scope: Scope
    search: Search


class TurnTexts:
    """Vectors of the texts of one turn's searches.

    The first search that needs a vector embeds the texts of all; the others wait for it. If that
    call fails, each search embeds its own texts, so that no text fails another's search.

    Args:
        texts: The texts of the searches beside, which are known only once the index is up to date.
    """

    def __init__(self, texts: Callable[[], Sequence[str]]) -> None:
        self._texts: Callable[[], Sequence[str]] | None = texts
        self._lock = InnerLock()
        self._vectors: dict[str, Float32Array] = {}

    def embedded(self, texts: list[str], embed: Callable[[list[str]], Vectors]) -> Vectors:
        """Return the vectors of one search's texts.

        Args:
            texts: The texts.
            embed: Embeds texts.

        Raises:
            EmbeddingError: If the embedder fails.
        """
        with self._lock:
            beside, self._texts = self._texts, None
            if beside is not None:
                self._embed_all([*texts, *beside()], embed)
        missing = [text for text in texts if text not in self._vectors]
        found = dict(zip(missing, embed(missing), strict=True)) if missing else {}
        return [found[text] if text in found else self._vectors[text] for text in texts]

    def _embed_all(self, texts: list[str], embed: Callable[[list[str]], Vectors]) -> None:
        different = list(dict.fromkeys(texts))
        with suppress(EmbeddingError):
            self._vectors = dict(zip(different, embed(different), strict=True))


def announced_to(turn: LoopTurn, embeds: object) -> list[AnnouncedSearch]:
    """Return the searches of a turn that one `QueryVectors` embeds."""
    announced = [each for each in turn.announced if isinstance(each, AnnouncedSearch)]
    return [each for each in announced if each.embeds is embeds]
