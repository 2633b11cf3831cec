"""The server of one user's memories: tools, resources and prompts over stdio or HTTP."""

from collections.abc import Mapping
from inspect import getdoc, signature
from typing import Any, Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedToolError,
)
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult
from msgspec.json import encode
from pydantic import ValidationError

from mnemic import __version__
from mnemic.errors import EmbeddingModelMismatchError, MnemicError
from mnemic.mcp.opening import OpenedMemory
from mnemic.mcp.told import DATA
from mnemic.mcp.tools import ANNOTATIONS, READING, MemoryTools

INSTRUCTIONS: Final = (
    "Memories of this project or user that outlive a session. Before you answer about people, "
    "preferences, decisions or earlier work, call recall; call remember for what a later session "
    f"should know. {DATA}"
)
BY_WORDS: Final = (
    " Here recall compares words alone, since there is no local model, or the vectors are another "
    "model's, which `mnemic reembed` replaces: ask with words that memories have."
)
OTHER_MODEL: Final = (
    "the vectors of these memories are another model's now; start the server again, which then "
    "compares words alone"
)
_OPENING_SECONDS: Final = 1.0
_MOST_MESSAGE: Final = 400


class MemoryServer(MCPServer[Any]):
    """The server; its errors are one sentence, without anything of another user.

    Args:
        opened: The memory.
        read_only: Whether the tools that change memories are left out.
    """

    def __init__(self, opened: OpenedMemory, *, read_only: bool = False) -> None:
        super().__init__(
            "mnemic",
            title="mnemic: long-term memory",
            instructions=INSTRUCTIONS + BY_WORDS * opened.is_by_words(_OPENING_SECONDS),
            version=__version__,
            log_level="ERROR",
        )
        tools = MemoryTools(opened)
        self._arguments: dict[str, list[str]] = {}
        for name, annotations in ANNOTATIONS.items():
            if name in READING or not read_only:
                tool = getattr(tools, name)
                self.add_tool(
                    tool, description=getdoc(tool), annotations=annotations, structured_output=True
                )
                self._arguments[name] = [*signature(tool).parameters]
        _add_resources(self, tools)
        _add_prompts(self)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; see `MCPServer.call_tool`.

        Args:
            name: Its name.
            arguments: Its arguments; unknown ones are refused, so that none is thought to work.
            context: Of the request.
        """
        self._refuse_unknown(name, arguments)
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error, UnexpectedToolError) and not isinstance(
                error.__cause__, MnemicError
            ):
                raise  # logged by the library, and says nothing but the tool's name
            raise ToolError(_sentence(name, error)) from None

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt; see `MCPServer.get_prompt`.

        Args:
            name: Its name.
            arguments: Its arguments.
            context: Of the request.
        """
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise MCPError(INVALID_PARAMS, _cut(str(error))) from None

    def _refuse_unknown(self, name: str, arguments: Mapping[str, Any]) -> None:
        known = self._arguments.get(name, arguments)
        unknown = sorted(set(arguments) - set(known))
        if unknown:
            there = ", ".join(known) or "none"
            raise ToolError(_cut(f"{name} has no argument {unknown[0]!r}; it has {there}"))


def _sentence(name: str, error: ToolError) -> str:
    cause = error.__cause__
    if isinstance(cause, EmbeddingModelMismatchError):
        return OTHER_MODEL
    if isinstance(cause, MnemicError):
        return _cut(str(cause))
    if isinstance(cause, ValidationError):
        first = cause.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return _cut(f"{name}: {place}: {first['msg']}")
    return _cut(str(error))


def _cut(message: str) -> str:
    flat = " ".join(message.split())
    return flat if len(flat) <= _MOST_MESSAGE else f"{flat[: _MOST_MESSAGE - 1]}…"


def _add_resources(server: MemoryServer, tools: MemoryTools) -> None:
    async def stats() -> str:
        """Numbers of memories by type and state."""
        try:
            return encode(await tools.counts()).decode()
        except MnemicError as error:
            raise ResourceError(_cut(str(error))) from None

    async def memory(id: str) -> str:  # noqa: A002 - the template's name for it
        """Return one memory, whole."""
        try:
            found = await tools.whole(id)
        except MnemicError as error:
            raise ResourceNotFoundError(_cut(str(error))) from None
        if found is None:
            raise ResourceNotFoundError("there is no such memory")
        return encode({"note": DATA} | found).decode()

    json = "application/json"
    server.resource("memory://stats", name="stats", mime_type=json)(stats)
    server.resource("memory://{id}", name="memory", mime_type=json)(memory)


def _add_prompts(server: MemoryServer) -> None:
    def recall_first(question: str) -> str:
        """Answer a question from the memories."""
        return (
            "Call the tool recall with the question below, and read with the ids that matter. "
            "Answer from what they say, name the ids, and say so where they say nothing. "
            f"{DATA}\n\nQuestion: {question}"
        )

    def review_contradictions() -> str:
        """Find memories that contradict each other, and settle them with the user."""
        return (
            "Go through the memories with the tool timeline, page by page. Call contradictions "
            "with each statement that may have changed. Show the user each pair with ids and days, "
            f"and ask which holds; then call correct or forget for the other. {DATA}"
        )

    server.prompt("recall-first", title="Recall first")(recall_first)
    server.prompt("review-contradictions", title="Review contradictions")(review_contradictions)
