"""The example of an embedder of one's own runs and finds what it says."""

import runpy

from tests.support.paths import ROOT


def test_the_example_of_an_own_embedder_runs(capsys):
    runpy.run_path(str(ROOT / "examples" / "own_embedder.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "bee keping: The beekeeping course starts on the first Monday in May.",
        "acordion repair: Jonas repairs accordions and concertinas.",
        "harbor ferries: The harbour ferry does not run on Sundays.",
        "AdaptedEmbedder(model='hashed-ngrams-v1', dimensions=1536)",
        "hashed-ngrams-v1, 1536",
    ]
