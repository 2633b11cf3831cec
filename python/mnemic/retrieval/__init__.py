"""Retrieval with weighted relevance, expansion, a cache and context augmentation (document 000)."""

from mnemic.retrieval.engine import RetrievalEngine
from mnemic.retrieval.expansion import (
    AskMemories,
    CorpusExpander,
    Expander,
    LanguageModelExpander,
    Related,
)
from mnemic.retrieval.service import RetrievalService
from mnemic.retrieval.suggestions import (
    AskForPhrases,
    CorpusSuggester,
    LanguageModelSuggester,
    Suggester,
)

__all__ = [
    "AskForPhrases",
    "AskMemories",
    "CorpusExpander",
    "CorpusSuggester",
    "Expander",
    "LanguageModelExpander",
    "LanguageModelSuggester",
    "Related",
    "RetrievalEngine",
    "RetrievalService",
    "Suggester",
]
