"""The judge without a model: adds up weighted evidence for and against a contradiction."""

import math
from collections.abc import Sequence
from decimal import localcontext

from mnemic._core import Coverage, detect_language
from mnemic.contradictions.features import WEIGHTS, evidence
from mnemic.contradictions.judgement import Judgement, check_texts
from mnemic.contradictions.parse import parse
from mnemic.contradictions.quantity import EXACT
from mnemic.contradictions.reading import Reading
from mnemic.contradictions.signals import Pair
from mnemic.reporting.near_names import names_arguments
from mnemic.threads.sync_bridge import run_blocking

_SHORT = 4096  # characters of all texts; reading more would hold up an event loop
_NONE = Judgement(0.0)
_ENGLISH = Coverage(["en"])


def _is_english(text: str) -> bool:
    return _ENGLISH.covers(text) and detect_language(text[:_SHORT]) in {None, "en"}


def _against(newer: Reading, other: str) -> Judgement:
    if not _is_english(other):
        return _NONE
    found, reason = evidence(Pair(parse(other), newer))
    if not found:
        return _NONE
    score = sum(WEIGHTS.get(name, 0.0) * value for name, value in found.items() if value)
    return Judgement(round(1 / (1 + math.exp(-score)), 3), reason)


@names_arguments
class RuleJudge:
    """Judges English statements by tables and fitted weights: no network, no model, deterministic.

    It abstains, with a confidence of 0, where one of two texts is in another language: in another
    script, or detected as another. Texts of a few Latin words count as English.

    Of each text the first 4,096 characters are read, and of these the first 64 numbers, dates and
    times. A number of more than 30 digits is ignored.
    """

    async def judge(self, statement: str, others: Sequence[str]) -> list[Judgement]:
        """Return one judgement for each of the older memories, in their order."""
        check_texts(statement, others)
        length = len(statement) + sum(len(other) for other in others)
        if length <= _SHORT:
            return self._judged(statement, others)
        return await run_blocking(lambda: self._judged(statement, others))

    def _judged(self, statement: str, others: Sequence[str]) -> list[Judgement]:
        with localcontext(EXACT):
            if not _is_english(statement):
                return [_NONE] * len(others)
            newer = parse(statement)
            return [_against(newer, other) for other in others]
