"""What both providers do: open a memory, and name users and sessions as it takes them."""

import os
from typing import TypeAlias
from urllib.parse import quote

from mnemic import AsyncMemory, Memory

AnyMemory: TypeAlias = str | os.PathLike[str] | Memory | AsyncMemory


def opened(memory: AnyMemory) -> AsyncMemory:
    """Return a memory to await: that of a file, or one that is open."""
    if isinstance(memory, str | os.PathLike):
        return AsyncMemory(memory, agent_id="agent-framework")
    return memory.aio if isinstance(memory, Memory) else memory


def quoted(name: str) -> str:
    """Return a name without slashes, and without what no file can hold."""
    return quote(name, safe="", errors="surrogatepass")
