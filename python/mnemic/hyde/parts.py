"""The embedder and the language model that a configuration names."""

from typing import TYPE_CHECKING, NamedTuple

from mnemic.hyde.config import HydeConfig
from mnemic.hyde.service import Closable
from mnemic.reporting.description import must_be
from mnemic.reporting.logs import logger
from mnemic.repository import Repository

if TYPE_CHECKING:
    from mnemic.embed.base import AnyEmbedder
    from mnemic.llm.base import AnyLanguageModel

_log = logger("mnemic.hyde")


class EngineParts(NamedTuple):
    """The parts that an engine is made of.

    Attributes:
        embedder: The embedder; None disables.
        llm: The language model; None disables.
        made: Those of them that were made here, and are to be closed.
    """

    embedder: "AnyEmbedder | None" = None
    llm: "AnyLanguageModel | None" = None
    made: tuple[Closable, ...] = ()


def checked_config(config: object) -> HydeConfig:
    """Return a configuration.

    Raises:
        InvalidArgumentError: If it is none.
    """
    if not isinstance(config, HydeConfig):
        raise must_be("config", "a HydeConfig", config)
    return config


def parts_of(
    repository: Repository,
    config: HydeConfig,
    embedder: "AnyEmbedder | None",
    llm: "AnyLanguageModel | None",
) -> EngineParts:
    """Return the parts of an engine: the given ones, else those that the configuration names.

    Nothing is made unless there are both; one alone is named by a warning in the log.
    """
    has_embedder = embedder is not None or bool(config.embedding_model)
    has_llm = llm is not None or bool(config.hypothesis_model)
    if not (has_embedder and has_llm):
        if has_embedder or has_llm:
            _log.warning(
                "Retrieval by hypotheses is disabled: hypothesis_model and embedding_model must "
                "both be set, and %s is not",
                "hypothesis_model" if has_embedder else "embedding_model",
            )
        return EngineParts()
    made: list[Closable] = []
    if embedder is None:
        embedder = _embedder(repository, config, made)
    if llm is None:
        from mnemic.llm.http import HttpLanguageModel  # noqa: PLC0415 - httpx is optional

        llm = client = HttpLanguageModel(config.hypothesis_model)
        made.append(client)
    return EngineParts(embedder, llm, tuple(made))


def _embedder(repository: Repository, config: HydeConfig, made: list[Closable]) -> "AnyEmbedder":
    """Return the memory's own embedder, or for a memory without one a client of a service.

    Raises:
        EmbeddingModelMismatchError: If the memory's vectors are of another model.
    """
    repository.readiness.check_model(config.embedding_model)
    own = repository.readiness.embedder
    if own is not None:
        return own.embedder
    from mnemic.embed.http import HttpEmbedder  # noqa: PLC0415 - httpx is optional

    client = HttpEmbedder(
        config.embedding_model,
        base_url=config.embedding_base_url or None,
        api_key=config.embedding_api_key or None,
    )
    made.append(client)
    return client
