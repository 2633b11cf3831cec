"""The embedder that the options of a memory name."""

from typing import TYPE_CHECKING

from mnemic.embed.adapting import KNOWN_FORMS
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import InvalidArgumentError
from mnemic.reporting.description import quoted

if TYPE_CHECKING:
    from mnemic.embed import AnyEmbedder, Embedder


def chosen_embedder(
    given: "AnyEmbedder | str | None", model: str | None
) -> ValidatedEmbedder | None:
    """Return the embedder with its results checked; None without one.

    Raises:
        InvalidArgumentError: If it has no known form, or a model is named for one that has its own.
    """
    if given is None:
        return None
    if not isinstance(given, str):
        return ValidatedEmbedder(given, model=model)
    named = _named_embedder(given)
    if model is not None:
        raise InvalidArgumentError(
            "embedding_model names the model of given vectors or of an embedder of your own; "
            f"leave it out, or give embedder=, which is {quoted(given)}"
        )
    return ValidatedEmbedder(named)


def _named_embedder(name: str) -> "Embedder":
    if name != "minilm":
        raise InvalidArgumentError(f"embedder must be {KNOWN_FORMS}; got {quoted(name)}")
    from mnemic.embed.minilm import MiniLmEmbedder  # noqa: PLC0415 - an optional extra

    return MiniLmEmbedder()
