from mnemic.contradictions.judgement import ContradictionJudge as ContradictionJudge
from mnemic.contradictions.judgement import Judgement as Judgement
from mnemic.contradictions.language_model import LanguageModelJudge as LanguageModelJudge
from mnemic.contradictions.rule_judge import RuleJudge as RuleJudge
