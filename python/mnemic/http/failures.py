"""A failed request, and the errors that callers get for it."""

from typing import NamedTuple

from mnemic.errors import EmbeddingServiceError, LanguageModelServiceError


class ErrorTypes(NamedTuple):
    """The errors of one kind of service.

    Attributes:
        service: Of an error response, or of a connection that failed.
        timeout: Of a request that took too long.
        result: Of a response that is none of the protocol.
    """

    service: type[EmbeddingServiceError] | type[LanguageModelServiceError]
    timeout: type[EmbeddingServiceError] | type[LanguageModelServiceError]
    result: type[Exception]


class RequestFailure(Exception):  # noqa: N818 - callers get another error for it
    """A request failed; inside the transport alone.

    Attributes:
        message: Says why, without keys and texts.
        status: Status of the response; None without one.
        body: Beginning of its body, without keys and texts.
        retry_after: Seconds after which the service takes the next request; None if it names none.
        is_retried: Whether a later request may succeed.
        is_timeout: Whether it took too long.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        body: str = "",
        retry_after: float | None = None,
        is_retried: bool = False,
        is_timeout: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.body = body
        self.retry_after = retry_after
        self.is_retried = is_retried
        self.is_timeout = is_timeout

    def error(self, kinds: ErrorTypes) -> Exception:
        """Return the error that the caller gets."""
        kind = kinds.timeout if self.is_timeout else kinds.service
        return kind(self.message, status=self.status, body=self.body, retry_after=self.retry_after)


class InvalidResponse(Exception):  # noqa: N818 - callers get another error for it
    """A response has another form than the protocol's; the message quotes nothing of it."""
