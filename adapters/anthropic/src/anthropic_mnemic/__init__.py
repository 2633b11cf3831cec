"""Claude's memory tool over memories of mnemic."""

from anthropic_mnemic.tools import AsyncMnemicMemoryTool as AsyncMnemicMemoryTool
from anthropic_mnemic.tools import MnemicMemoryTool as MnemicMemoryTool

__all__ = ["AsyncMnemicMemoryTool", "MnemicMemoryTool"]
