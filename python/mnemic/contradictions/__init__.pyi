from mnemic.contradictions.language_model import LanguageModelJudge as LanguageModelJudge
from mnemic.contradictions.rule_judge import ContradictionJudge as ContradictionJudge
from mnemic.contradictions.rule_judge import Judgement as Judgement
from mnemic.contradictions.rule_judge import RuleJudge as RuleJudge
