"""The lexicon is built late."""

import subprocess
import sys

from tests.support.paths import ROOT

TABLES_ARE_READ_LATE = """
import asyncio
from mnemic.contradictions import RuleJudge
from mnemic.contradictions.vocabulary import lexicon
judge = RuleJudge()
assert lexicon.cache_info().misses == 0
asyncio.run(judge.judge("Irma is 40.", ["Irma is 30."]))
assert lexicon.cache_info().misses == 1
"""


def test_the_lexicon_is_built_for_the_first_judgement_not_for_the_first_judge():
    subprocess.run([sys.executable, "-c", TABLES_ARE_READ_LATE], cwd=ROOT, check=True)
