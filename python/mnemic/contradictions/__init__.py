"""Detection of contradictions: memories that a text contradicts."""

from mnemic.contradictions.judgement import ContradictionJudge, Judgement
from mnemic.contradictions.language_model import LanguageModelJudge
from mnemic.contradictions.rule_judge import RuleJudge

__all__ = ["ContradictionJudge", "Judgement", "LanguageModelJudge", "RuleJudge"]
