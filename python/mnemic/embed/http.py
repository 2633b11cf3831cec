"""Embeddings of a service that speaks the OpenAI-compatible protocol over HTTP."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, final

import numpy as np

from mnemic.arrays import Float32Array
from mnemic.embed.base import checked_texts
from mnemic.errors import (
    EmbedderResultError,
    EmbeddingServiceError,
    EmbeddingTimeoutError,
    InvalidArgumentError,
)
from mnemic.http import EMBEDDINGS, ErrorTypes, Request, Service, connection, extra_body, model_name
from mnemic.http.responses import decoded_vectors
from mnemic.model.validation import MAX_DIMENSIONS, whole, word
from mnemic.reporting.habits import EMBEDDER, AnswersHabits
from mnemic.reporting.near_names import names_arguments
from mnemic.threads.event_loop_thread import EventLoopThread

AT_ONCE = 4
"""Requests of one call that run at once."""

_ERRORS = ErrorTypes(EmbeddingServiceError, EmbeddingTimeoutError, EmbedderResultError)


@names_arguments
@final
class HttpEmbedder(AnswersHabits):
    """Embeds by `POST {base_url}/embeddings`, as OpenAI, Ollama, vLLM and llama.cpp take it.

    One client serves all calls of an event loop. Requests that fail by a lost
    connection, a rate limit (429) or an error of the service (5xx) are sent again, after the time
    that the service names, or after half a second, doubled with each retry, more or less a quarter
    by chance. Nothing is retried beyond `timeout`, and neither a timeout nor another error is.

    Keys are shown by no repr, log line, error or pickle. Proxies are those of the environment
    (`HTTPS_PROXY`, `NO_PROXY`); redirects are not followed.

    Args:
        model: Name of the model, which is stored with every vector. It is an attribute too.
        base_url: Address of the service, such as http://localhost:11434/v1; None takes the
            environment's `EMBEDDING_BASE_URL`, `OPENAI_BASE_URL`, or https://api.openai.com/v1.
        api_key: The key; None takes the environment's `EMBEDDING_API_KEY` or `OPENAI_API_KEY`, and
            "" sends none. Only the default address demands one.
        dimensions: Length of each vector, requested from the service; None for the model's own,
            which is learned from the first response.
        timeout: Seconds for a request, with its retries.
        max_retries: Maximum number of retries of a request.
        max_connections: Connections of one event loop at a time; further requests wait.
        batch_size: Maximum number of texts of a request, an attribute too.
        headers: Further headers of each request, hidden as the key is.
        extra_body: Further members of each request's JSON, such as {"truncate": True}, or
            {"encoding_format": "base64"}: services that know it send a third of the bytes.

    Raises:
        InvalidArgumentError: If an argument is invalid, or the default address has no key.
        MissingExtraError: If httpx2 or tenacity is not installed.
    """

    _habits: ClassVar[Mapping[str, str]] = EMBEDDER

    takes_many = True
    join_calls = True

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
        max_connections: int = 100,
        batch_size: int = 128,
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        self.model: str = model_name(model)
        self.batch_size: int = whole("batch_size", batch_size, minimum=1)
        self._dimensions = _checked_dimensions(dimensions)
        self._body = _body(self.model, dimensions, extra_body)
        self._service = Service(base_url, api_key, headers, EMBEDDINGS)
        limits = timeout, max_retries, max_connections
        self._transport = connection(self._service, _ERRORS, limits)
        self._loop = EventLoopThread()

    @property
    def dimensions(self) -> int | None:
        """Length of each vector; None until it is known."""
        return self._dimensions

    async def embed(self, texts: Sequence[str], /) -> Float32Array:
        """Embed each text; many are split into requests, of which some run at once.

        Args:
            texts: The texts. None of them is no request.

        Returns:
            Shape (len(texts), dimensions), in the order of `texts`, as the service returns them.

        Raises:
            EmbeddingServiceError: If the service returns an error or cannot be reached.
            EmbeddingTimeoutError: If it does not respond in time.
            EmbedderResultError: If a response is none of the protocol, or does not have one vector
                of finite numbers and the known length for each text.
            InvalidArgumentError: If `texts` is one string, or an item is no text.
        """
        checked = checked_texts(texts)
        size = self.batch_size
        batches = [checked[at : at + size] for at in range(0, len(checked), size)]
        if not batches:
            return np.empty((0, self._dimensions or 0), np.float32)
        if len(batches) == 1:
            return await self._request(batches[0])
        return np.concatenate(await self._requests(batches))

    def embed_sync(self, texts: Sequence[str], /) -> Float32Array:
        """Embed each text as `embed` does, from a thread without an event loop.

        Args:
            texts: The texts.
        """
        return self._loop.run(self.embed(texts))

    async def _requests(self, batches: list[list[str]]) -> list[Float32Array]:
        slots = asyncio.Semaphore(AT_ONCE)

        async def sent(batch: list[str]) -> Float32Array:
            async with slots:
                return await self._request(batch)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(sent(batch)) for batch in batches]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _request(self, texts: list[str]) -> Float32Array:
        request = Request("embeddings", {**self._body, "input": texts}, texts)
        vectors = await self._transport.post(request, lambda body: self._decoded(body, len(texts)))
        self._dimensions = vectors.shape[1]
        return vectors

    def _decoded(self, body: bytes, count: int) -> Float32Array:
        return decoded_vectors(body, count, self._dimensions)

    def close(self) -> None:
        """Close all connections. Repeated calls have no effect. In an event loop, use `aclose`."""
        self._transport.close()
        self._loop.close()

    async def aclose(self) -> None:
        """Close all connections. Repeated calls have no effect."""
        await self._transport.aclose()
        if self._loop.is_running:
            await asyncio.to_thread(self._loop.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.model!r}, base_url={self._service.base_url!r}, "
            f"dimensions={self._dimensions})"
        )


def _checked_dimensions(given: object) -> int | None:
    if given is None:
        return None
    dimensions = whole("dimensions", given, minimum=1)
    if dimensions > MAX_DIMENSIONS:
        raise InvalidArgumentError(f"dimensions must be at most {MAX_DIMENSIONS}, got {dimensions}")
    return dimensions


def _body(model: str, dimensions: int | None, extra: object) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "encoding_format": "float"}
    if dimensions is not None:
        body["dimensions"] = dimensions
    body |= extra_body(extra, {"model", "input"})
    word("encoding_format", body["encoding_format"], ("float", "base64"))
    return body
