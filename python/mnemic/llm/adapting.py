"""The contract of language models; functions and objects with `complete` become some."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeAlias

from mnemic.errors import InvalidArgumentError, LanguageModelResultError
from mnemic.records.secrets import without_passwords
from mnemic.reporting.description import described, must_be
from mnemic.reporting.near_names import checks_arguments
from mnemic.threads.sync_bridge import awaited, is_awaited, run_blocking


class LanguageModel(Protocol):
    """Answers prompts. Must allow concurrent calls from several tasks."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    async def complete(self, prompt: str, *, system: str | None = None) -> str:
        """Return the answer to a prompt.

        Args:
            prompt: The prompt.
            system: System prompt, or None.
        """
        ...


class HasComplete(Protocol):
    """Answers prompts by `complete`, plain or awaited, with or without a system prompt."""

    def complete(self, prompt: Any, /) -> Any:
        """Return the answer to a prompt.

        Args:
            prompt: The prompt.
        """
        ...


AnyLanguageModel: TypeAlias = (
    LanguageModel
    | HasComplete
    | Callable[[str], Any]
    | Callable[[str, str], Any]
    | Callable[..., Any]  # one with `system` as a keyword
)
"""The forms of a language model; see `mnemic.llm.as_language_model`."""


_MODEL_NAMES = ("model", "model_name", "model_id")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class AdaptedLanguageModel:
    """A language model made of a function or an object; see `as_language_model`.

    Args:
        given: The function or object, which is an attribute too.
        call: Its function, which is an attribute too.
        model: Name of the model, which is an attribute too.
        run: Runs a plain function in another thread.
    """

    def __init__(
        self,
        given: object,
        call: Callable[..., object],
        model: str,
        run: Callable[[Callable[[], object]], Awaitable[object]] = run_blocking,
    ) -> None:
        self.given = given
        self.model = model
        self.call = call
        self._run = run
        self._passes_system = _system_passing(call)

    async def complete(self, prompt: str, *, system: str | None = None) -> str:
        """Return the answer to a prompt.

        A plain function runs in another thread, which goes on where the caller is cancelled.

        Args:
            prompt: The prompt.
            system: System prompt, or None. It begins the prompt of a function that takes none.

        Raises:
            LanguageModelResultError: If something other than a text was returned.
        """
        values: list[str | None] = [prompt]
        named = {"system": system} if self._passes_system == "named" else {}
        if self._passes_system == "second":
            values.append(system)
        elif not named and system is not None:
            values = [f"{system}\n\n{prompt}"]
        if is_awaited(self.call):
            answer = self.call(*values, **named)
        else:
            answer = await self._run(partial(self.call, *values, **named))
        if isinstance(answer, Awaitable):
            answer = await awaited(answer)
        if not isinstance(answer, str):
            raise LanguageModelResultError(
                f"the language model {self.model!r} returned {described(answer)} in place of a text"
            )
        return answer

    def __repr__(self) -> str:
        return without_passwords(f"{type(self).__name__}(model={self.model!r})")


@checks_arguments
def as_language_model(given: AnyLanguageModel, /, *, model: str | None = None) -> LanguageModel:
    """Return a language model made of an object with `complete`, or of a function.

    `complete`, or the function, takes the prompt, and the system prompt as an argument named
    `system` or as its second one; otherwise the system prompt begins the prompt. It returns the
    answer, or is a coroutine function; a plain one runs in a thread.

    Args:
        given: The object or function.
        model: Name of the model; by default the object's own, by its attribute `model`,
            `model_name` or `model_id`, or the name of the function or class.

    Raises:
        InvalidArgumentError: If it is neither.
    """
    return adapted_language_model(given, model)


def adapted_language_model(
    given: AnyLanguageModel,
    model: str | None = None,
    run: Callable[[Callable[[], object]], Awaitable[object]] = run_blocking,
) -> AdaptedLanguageModel:
    """Return what `as_language_model` does, by its class; `run` runs plain functions in threads."""
    if isinstance(given, AdaptedLanguageModel) and model is None:
        is_same = run is run_blocking
        return given if is_same else AdaptedLanguageModel(given.given, given.call, given.model, run)
    return AdaptedLanguageModel(given, _function(given), _model_of(given, model), run)


def _function(given: object) -> Callable[..., object]:
    if isinstance(given, type):
        raise InvalidArgumentError(
            f"llm is the class {given.__name__}; give an instance of it: {given.__name__}(…)"
        )
    complete: object = getattr(given, "complete", None)
    found = complete if callable(complete) else given
    if not callable(found):
        raise must_be("llm", "an object with a method 'complete', or a function of a prompt", given)
    return found


def _model_of(given: object, named: object) -> str:
    if named is not None:
        if not isinstance(named, str) or not named.strip():
            raise must_be("model", "a name", named)
        return named
    found = [getattr(given, name, None) for name in _MODEL_NAMES]
    names = [name for name in found if isinstance(name, str) and name.strip()]
    own: object = getattr(given, "__name__", type(given).__name__)
    return names[0] if names else str(own)


def _system_passing(call: Callable[..., object]) -> str:
    """Return how a function takes the system prompt: "named", "second", or "" where it does not."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have none
        return ""
    if any(_takes_system(parameter) for parameter in parameters):
        return "named"
    required = [each for each in parameters if each.kind in _POSITIONAL]
    has_second = len(required) > 1 and (
        required[1].default is inspect.Parameter.empty or required[1].name == "system"
    )
    return "second" if has_second else ""


def _takes_system(parameter: inspect.Parameter) -> bool:
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return True
    return parameter.name == "system" and parameter.kind in _NAMED
