"""Types of arguments, for annotations: interfaces that a program implements, options, aliases.

Records, results and enums are in `mnemic`, errors in `mnemic.errors`, events in `mnemic.events`.
"""

from mnemic.context.items import ItemFields
from mnemic.context.tokens import Tokenizer
from mnemic.contradictions import ContradictionJudge
from mnemic.crypto.detection import Detector
from mnemic.crypto.keys import KeyProvider
from mnemic.embed import AnyEmbedder, Embedder
from mnemic.index.choice import IndexChoice
from mnemic.index.faiss_kinds import FaissKind
from mnemic.licensing import LicensePolicy
from mnemic.llm import AnyLanguageModel, LanguageModel
from mnemic.model import (
    AuditKind,
    Expression,
    OnConflict,
    OnDuplicate,
    OnEmbedError,
    OnQueryError,
    OnRecalled,
    OnTimeout,
    SearchIn,
    SearchType,
)
from mnemic.model.recall import AllRecallFields, ProjectScope, RecallFields, RecallTypeFields
from mnemic.model.text_query import RetrieveFields
from mnemic.model.update import Expiry
from mnemic.progress import Progress
from mnemic.protocols import (
    Clock,
    IdFactory,
    Source,
    Summarizer,
    Target,
    TokenCounter,
)
from mnemic.repository import Options, Searchable
from mnemic.repository.retention import WhenFull
from mnemic.retrieval import (
    AnyExpander,
    Expander,
    FindPhrases,
    FindRelated,
    Suggester,
    Synonyms,
)
from mnemic.store import Direction
from mnemic.verbs.base import NewMemory
from mnemic.verbs.paging import MinScore

__all__ = [
    "AllRecallFields",
    "AnyEmbedder",
    "AnyExpander",
    "AnyLanguageModel",
    "AuditKind",
    "Clock",
    "ContradictionJudge",
    "Detector",
    "Direction",
    "Embedder",
    "Expander",
    "Expiry",
    "Expression",
    "FaissKind",
    "FindPhrases",
    "FindRelated",
    "IdFactory",
    "IndexChoice",
    "ItemFields",
    "KeyProvider",
    "LanguageModel",
    "LicensePolicy",
    "MinScore",
    "NewMemory",
    "OnConflict",
    "OnDuplicate",
    "OnEmbedError",
    "OnQueryError",
    "OnRecalled",
    "OnTimeout",
    "Options",
    "Progress",
    "ProjectScope",
    "RecallFields",
    "RecallTypeFields",
    "RetrieveFields",
    "SearchIn",
    "SearchType",
    "Searchable",
    "Source",
    "Suggester",
    "Summarizer",
    "Synonyms",
    "Target",
    "TokenCounter",
    "Tokenizer",
    "WhenFull",
]
