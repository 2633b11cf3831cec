"""Retrieval by structured queries: weighted relevance, expansion, cache, context augmentation."""

from mnemic.retrieval.engine import RetrievalEngine
from mnemic.retrieval.expansion import (
    CorpusExpander,
    Expander,
    FindRelated,
    LanguageModelExpander,
    Related,
)
from mnemic.retrieval.given_expanders import (
    AnyExpander,
    ExpandFunction,
    FunctionExpander,
    SynonymExpander,
    Synonyms,
    expander_of,
)
from mnemic.retrieval.service import RetrievalService, SyncRetrievalService
from mnemic.retrieval.suggestions import (
    CorpusSuggester,
    FindPhrases,
    LanguageModelSuggester,
    Suggester,
)

__all__ = [
    "AnyExpander",
    "CorpusExpander",
    "CorpusSuggester",
    "ExpandFunction",
    "Expander",
    "FindPhrases",
    "FindRelated",
    "FunctionExpander",
    "LanguageModelExpander",
    "LanguageModelSuggester",
    "Related",
    "RetrievalEngine",
    "RetrievalService",
    "Suggester",
    "SyncRetrievalService",
    "SynonymExpander",
    "Synonyms",
    "expander_of",
]
