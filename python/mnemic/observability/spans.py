"""Spans of OpenTelemetry, by its conventions for generative AI.

OpenTelemetry is never imported here: spans are made from the moment when the program itself has
imported `opentelemetry.trace` and set a provider. They hold neither texts nor users; see
`CAPTURES_CONTENT`.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar, cast
from uuid import UUID

import msgspec

from mnemic._core import __version__
from mnemic.model import MemoryEntry
from mnemic.reporting.description import failure
from mnemic.reporting.logs import logger

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram
    from opentelemetry.trace import Span, Tracer

    from mnemic.embed.validated import ValidatedEmbedder

Attributes: TypeAlias = Mapping[str, str | int]
Function = TypeVar("Function", bound=Callable[..., Any])

CAPTURES_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable of the environment by which a program asks for queries and contents in spans."""

OPTS_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"
IN_DEVELOPMENT = "gen_ai_latest_experimental"
"""What this variable names where a program asks for the conventions' own metric."""

OPERATION = "gen_ai.operation.name"
RECORD_COUNT = "gen_ai.memory.record.count"
RECORD_ID = "gen_ai.memory.record.id"
RECORDS = "gen_ai.memory.records"
QUERY = "gen_ai.memory.query.text"
STORE_ID = "gen_ai.memory.store.id"
ERROR_TYPE = "error.type"

_DURATION = "gen_ai.client.operation.duration"
_SECONDS = (0.00001, 0.0001, 0.001, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)
_TRACE = "opentelemetry.trace"
_SET = "_TRACER_PROVIDER"
"""The provider in that module; where it is called otherwise, it is asked for each time."""

_NO_SPAN = nullcontext()

_COROUTINE = 0x80
"""`inspect.CO_COROUTINE`; importing inspect takes 12 ms."""

_log = logger(__name__)


class _Process:
    """The tracer of the program's provider, and the conventions' histogram.

    Attributes:
        known: The tracer, as the last operation found it; None where nobody collects spans.
    """

    def __init__(self) -> None:
        self._provider: object = None
        self.known: Tracer | None = None
        self._histogram: Histogram | None = None
        self._has_failed = False

    def tracer(self) -> "Tracer | None":
        """Return the tracer; None where the program collects no spans."""
        try:
            trace = sys.modules[_TRACE]
            # Asking for the provider costs 5 µs while there is none, and looking for it .1.
            if self._provider is not None and getattr(trace, _SET, trace) is None:
                return None
            provider = trace.get_tracer_provider()
            if provider is not self._provider:
                is_set = not isinstance(provider, trace.ProxyTracerProvider)
                self.known = provider.get_tracer("mnemic", __version__) if is_set else None
                self._provider = provider
        except Exception as error:  # noqa: BLE001 - it may be half imported, or another version
            self.log_failure(error)
            self.known = None
        return self.known

    def measure(self, seconds: float, attributes: Attributes) -> None:
        """Add to the conventions' histogram, where the program has asked for it."""
        if IN_DEVELOPMENT not in os.environ.get(OPTS_IN, "").split(","):
            return
        if self._histogram is None:
            from opentelemetry.metrics import get_meter  # noqa: PLC0415 - where spans are, it is

            self._histogram = get_meter("mnemic", __version__).create_histogram(
                _DURATION,
                "s",
                "Duration of a GenAI operation",
                explicit_bucket_boundaries_advisory=_SECONDS,
            )
        self._histogram.record(seconds, attributes)

    def log_failure(self, error: Exception) -> None:
        """Log the kind of the first error: the operation goes on, whoever traces it."""
        if not self._has_failed:
            self._has_failed = True
            _log.error("Tracing failed: %s", failure(error))


_process = _Process()


class _Traced:
    """A span around a block, current inside it; its attributes are complete at its end.

    No error of OpenTelemetry's leaves it.

    Args:
        tracer: Makes it.
        name: Its name.
        attributes: Those known at its beginning.
    """

    def __init__(self, tracer: "Tracer", name: str, attributes: Attributes) -> None:
        self._tracer = tracer
        self._name = name
        self._attributes = dict(attributes)
        self._scope: AbstractContextManager[Span] | None = None
        self._span: Span | None = None
        self._started = 0.0

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        try:
            self._scope = self._tracer.start_as_current_span(
                self._name,
                attributes=self._attributes,
                record_exception=False,  # its message and its traceback may quote
                set_status_on_exception=False,
            )
            self._span = self._scope.__enter__()
        except Exception as error:  # noqa: BLE001 - see above
            _process.log_failure(error)
        return self

    def note(self, facts: Callable[[], Attributes]) -> None:
        """Add attributes, which are made if somebody records the span."""
        try:
            if self._span is not None and self._span.is_recording():
                self._span.set_attributes(facts())
        except Exception as error:  # noqa: BLE001 - see above
            _process.log_failure(error)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None:
                self._attributes[ERROR_TYPE] = kind.__qualname__
                self._fail(kind)
            if self._scope is not None:
                self._scope.__exit__(None, None, None)
            if OPERATION in self._attributes:
                named = {OPERATION, ERROR_TYPE}.intersection(self._attributes)
                attributes = {name: self._attributes[name] for name in named}
                _process.measure(time.perf_counter() - self._started, attributes)
        except Exception as failed:  # noqa: BLE001 - see above
            _process.log_failure(failed)

    def _fail(self, kind: type[BaseException]) -> None:
        from opentelemetry.trace import StatusCode  # noqa: PLC0415 - loaded already

        if self._span is not None:
            self._span.set_attribute(ERROR_TYPE, kind.__qualname__)
            self._span.set_status(StatusCode.ERROR)


def phase(name: str) -> AbstractContextManager[object]:
    """Return a span around a part of an operation; one of nothing where nobody collects spans."""
    tracer = _process.known
    return _NO_SPAN if tracer is None else _Traced(tracer, name, {})


def embedding(embedder: "ValidatedEmbedder") -> AbstractContextManager[object]:
    """Return a span around calls of an embedder, as `phase` does."""
    tracer = _process.known
    if tracer is None:
        return _NO_SPAN
    model, dimensions = embedder.model, embedder.dimensions
    named: dict[str, str | int] = {OPERATION: "embeddings", "gen_ai.request.model": model}
    if dimensions is not None:
        named["gen_ai.embeddings.dimension.count"] = dimensions
    return _Traced(tracer, f"embeddings {model}", named)


class Traceable(Protocol):
    """A part of a memory whose operations are traced."""

    @property
    def store_id(self) -> str:
        """What spans call the memory: its agent."""
        ...


def traced(
    operation: str | Callable[[Mapping[str, Any]], str],
    facts: Callable[[Any, Sequence[Any]], Attributes],
) -> Callable[[Function], Function]:
    """Decorate a method of a part of a memory, plain or awaited: each call is a span.

    Args:
        operation: The operation's name by the conventions, or what returns it for the arguments
            that have names.
        facts: Returns the span's attributes for the result and the other arguments.
    """

    def begun(part: Traceable, named: Mapping[str, Any]) -> _Traced | None:
        tracer = _process.tracer()
        if tracer is None:
            return None
        name = operation if isinstance(operation, str) else operation(named)
        return _Traced(tracer, name, {OPERATION: name, STORE_ID: part.store_id})

    def decorated(function: Function) -> Function:
        is_awaited = bool(function.__code__.co_flags & _COROUTINE)

        @wraps(function)
        def call(part: Traceable, *values: Any, **named: Any) -> Any:
            span = begun(part, named) if _TRACE in sys.modules else None
            if span is None:
                return function(part, *values, **named)
            if is_awaited:
                return awaited(span, part, values, named)
            with span:
                result = function(part, *values, **named)
                span.note(lambda: facts(result, values))
            return result

        async def awaited(
            span: _Traced, part: Traceable, values: Sequence[Any], named: Mapping[str, Any]
        ) -> Any:
            with span:
                result = await function(part, *values, **named)
                span.note(lambda: facts(result, values))
            return result

        return cast("Function", call)

    return decorated


def records(ids: Iterable[UUID]) -> Attributes:
    """Return the number of records that an operation wrote, and the id of a single one."""
    written = list(ids)
    one = {RECORD_ID: str(written[0])} if len(written) == 1 else {}
    return {RECORD_COUNT: len(written), **one}


def content_of(query: str | None, entries: Iterable[MemoryEntry]) -> Attributes:
    """Return the query and the memories of a search; nothing unless the program asks for them.

    Sensitive memories are left out.
    """
    if os.environ.get(CAPTURES_CONTENT, "").lower() != "true":
        return {}
    shown = [
        {"id": str(entry.id), "content": entry.content}
        for entry in entries
        if not entry.hides_content
    ]
    text = {} if query is None else {QUERY: query}
    return {**text, RECORDS: msgspec.json.encode(shown).decode()}
