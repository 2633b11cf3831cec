"""Retrieval by structured queries: weighted relevance, expansion, cache, context augmentation."""

from mnemic.retrieval.engine import RetrievalEngine
from mnemic.retrieval.expansion import (
    CorpusExpander,
    Expander,
    FindRelated,
    LanguageModelExpander,
    Related,
)
from mnemic.retrieval.service import RetrievalService
from mnemic.retrieval.suggestions import (
    CorpusSuggester,
    FindPhrases,
    LanguageModelSuggester,
    Suggester,
)

__all__ = [
    "CorpusExpander",
    "CorpusSuggester",
    "Expander",
    "FindPhrases",
    "FindRelated",
    "LanguageModelExpander",
    "LanguageModelSuggester",
    "Related",
    "RetrievalEngine",
    "RetrievalService",
    "Suggester",
]
