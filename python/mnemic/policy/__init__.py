"""The retrieval policy: from a message to a bounded block of memories for a prompt.

`RetrievalPolicy` runs all steps in their order; each step is also a function of its own.
"""

from mnemic.context.budget import enforce_budget
from mnemic.context.clipping import clip
from mnemic.context.deduplication import deduplicate
from mnemic.context.interleaving import InterleavingStrategy, interleave
from mnemic.context.packing import Packed, Plan, pack
from mnemic.context.prompt_block import (
    NumberedLines,
    PromptBlock,
    PromptForm,
    ScoreLabel,
    format_for_system_prompt,
)
from mnemic.context.redaction import (
    DEFAULT_PATTERNS,
    KNOWN_PATTERNS,
    Redaction,
    RedactionPattern,
    redact,
)
from mnemic.model.payload import DroppedMemory, PayloadMemory, PayloadType, Provenance, Step
from mnemic.policy.breaker import CircuitBreaker, CircuitChange, CircuitState, Permit, Timer
from mnemic.policy.conditions import Trigger, TriggerReason, trigger
from mnemic.policy.config import RetrievalConfig
from mnemic.policy.errors import ERROR_POLICIES, ErrorCode, Fallback, RetrievalError
from mnemic.policy.limits import Allowance, FixedWindow, RateLimiter, TokenBucket
from mnemic.policy.payload import RetrievalMetadata, RetrievalPayload
from mnemic.policy.policy import AsyncRetrievalPolicy, RetrievalPolicy
from mnemic.policy.ranges import OutsideRecommendedWarning
from mnemic.policy.request import RetrievalRequest
from mnemic.policy.settings import AdminMemorySettings, InterleavingSettings, RetrievalSettings
from mnemic.policy.telemetry import RetrievalPolicyStats

__all__ = [
    "DEFAULT_PATTERNS",
    "ERROR_POLICIES",
    "KNOWN_PATTERNS",
    "AdminMemorySettings",
    "Allowance",
    "AsyncRetrievalPolicy",
    "CircuitBreaker",
    "CircuitChange",
    "CircuitState",
    "DroppedMemory",
    "ErrorCode",
    "Fallback",
    "FixedWindow",
    "InterleavingSettings",
    "InterleavingStrategy",
    "NumberedLines",
    "OutsideRecommendedWarning",
    "Packed",
    "PayloadMemory",
    "PayloadType",
    "Permit",
    "Plan",
    "PromptBlock",
    "PromptForm",
    "Provenance",
    "RateLimiter",
    "Redaction",
    "RedactionPattern",
    "RetrievalConfig",
    "RetrievalError",
    "RetrievalMetadata",
    "RetrievalPayload",
    "RetrievalPolicy",
    "RetrievalPolicyStats",
    "RetrievalRequest",
    "RetrievalSettings",
    "ScoreLabel",
    "Step",
    "Timer",
    "TokenBucket",
    "Trigger",
    "TriggerReason",
    "clip",
    "deduplicate",
    "enforce_budget",
    "format_for_system_prompt",
    "interleave",
    "pack",
    "redact",
    "trigger",
]
