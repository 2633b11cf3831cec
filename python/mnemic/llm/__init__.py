"""Language models, which a caller may supply."""

from mnemic.llm.base import LanguageModel

__all__ = ["LanguageModel"]
