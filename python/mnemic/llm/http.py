"""Language models of a service that speaks the OpenAI-compatible protocol over HTTP."""

from collections.abc import Mapping
from typing import Any, Self, final

from mnemic.errors import (
    InvalidArgumentError,
    LanguageModelResultError,
    LanguageModelServiceError,
    LanguageModelTimeoutError,
)
from mnemic.http import CHAT, ErrorTypes, Request, Service, connection, extra_body, model_name
from mnemic.http.responses import decoded_text
from mnemic.model.validation import is_number, lone_surrogate, whole
from mnemic.reporting.description import must_be
from mnemic.reporting.near_names import names_arguments

MAX_TEMPERATURE = 2.0

_ERRORS = ErrorTypes(LanguageModelServiceError, LanguageModelTimeoutError, LanguageModelResultError)


@names_arguments
@final
class HttpLanguageModel:
    """Answers prompts by `POST {base_url}/chat/completions`, as OpenAI, Ollama and vLLM take it.

    Connections, retries, keys and proxies are as those of `HttpEmbedder`.

    Args:
        model: Name of the model, which is an attribute too.
        base_url: Address of the service, such as http://localhost:11434/v1; None takes the
            environment's `OPENAI_BASE_URL`, or https://api.openai.com/v1.
        api_key: The key; None takes the environment's `OPENAI_API_KEY`, and "" sends none. Only the
            default address demands one.
        timeout: Seconds for an answer, with its retries.
        max_retries: Maximum number of retries of a request.
        max_connections: Connections of one event loop at a time; further requests wait.
        temperature: From 0 to 2; None for the service's own.
        max_tokens: Maximum number of tokens of an answer; None for the service's own. Some
            services take it by another name: extra_body={"max_completion_tokens": 500}.
        headers: Further headers of each request, hidden as the key is.
        extra_body: Further members of each request's JSON, such as {"reasoning_effort": "low"}.

    Raises:
        InvalidArgumentError: If an argument is invalid, or the default address has no key.
        MissingExtraError: If httpx2 or tenacity is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
        max_connections: int = 100,
        temperature: float | None = None,
        max_tokens: int | None = None,
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        self.model: str = model_name(model)
        self._body = _body(self.model, temperature, max_tokens, extra_body)
        self._service = Service(base_url, api_key, headers, CHAT)
        limits = timeout, max_retries, max_connections
        self._transport = connection(self._service, _ERRORS, limits)

    async def complete(self, prompt: str, *, system: str | None = None) -> str:
        """Return the answer to a prompt, unchanged.

        A cancellation ends the request at once, so `asyncio.timeout` sets a shorter limit.

        Args:
            prompt: The prompt.
            system: System prompt, or None.

        Raises:
            LanguageModelServiceError: If the service returns an error or cannot be reached.
            LanguageModelTimeoutError: If it does not respond in time.
            LanguageModelResultError: If it returns no text: no choice, a refusal, an answer that a
                filter withheld, or a response that is none of the protocol.
            InvalidArgumentError: If a prompt is no text.
        """
        texts = [_checked_text("prompt", prompt)]
        if system is not None:
            texts.insert(0, _checked_text("system", system))
        roles = ("system", "user")[-len(texts) :]
        messages = [
            {"role": role, "content": content} for role, content in zip(roles, texts, strict=True)
        ]
        request = Request("chat/completions", {**self._body, "messages": messages}, texts)
        return await self._transport.post(request, decoded_text)

    def close(self) -> None:
        """Close all connections. Repeated calls have no effect. In an event loop, use `aclose`."""
        self._transport.close()

    async def aclose(self) -> None:
        """Close all connections. Repeated calls have no effect."""
        await self._transport.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={self._service.base_url!r})"


def _body(model: str, temperature: object, max_tokens: object, extra: object) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "stream": False}
    if temperature is not None:
        body["temperature"] = _checked_temperature(temperature)
    if max_tokens is not None:
        body["max_tokens"] = whole("max_tokens", max_tokens, minimum=1)
    return {**body, **extra_body(extra, {"model", "messages", "stream"})}


def _checked_temperature(given: object) -> float:
    if not is_number(given) or not 0 <= given <= MAX_TEMPERATURE:
        raise must_be("temperature", f"from 0 to {MAX_TEMPERATURE:g}", given)
    return float(given)


def _checked_text(field: str, given: object) -> str:
    if not isinstance(given, str):
        raise must_be(field, "a str", given)
    if lone_surrogate(given) is not None:
        raise InvalidArgumentError(f"{field} holds half of a surrogate pair")
    return given
