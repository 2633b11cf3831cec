"""Language models, which mnemic uses only where a caller brings one."""

from mnemic.llm.base import LanguageModel

__all__ = ["LanguageModel"]
