"""Transcripts of the pages show what the command prints; ids, days and places may differ."""

import re
import subprocess
import sys

import pytest

from tests.support.pages import PAGES, blocks_of
from tests.support.processes import ENVIRONMENT

TRANSCRIPTS = [
    page for page in PAGES if any(block.language == "console" for block in blocks_of(page))
]
VARYING = [
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "ID"),
    (r"\b\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d\+00:00)?", "TIME"),
    (r"\S*memory\.db", "PLACE"),
    (r" +", " "),
]


def normalised(text):
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    return text.strip()


@pytest.mark.parametrize("page", TRANSCRIPTS)
def test_a_transcript_shows_what_is_printed(page, tmp_path):
    shim = tmp_path / "bin" / "mnemic"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m mnemic.cli "$@"\n')
    shim.chmod(0o755)
    own = {"PATH": f"{shim.parent}:/usr/bin:/bin", "MNEMIC_DB": str(tmp_path / "memory.db")}
    for block in blocks_of(page):
        if block.language != "console":
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                capture_output=True,
                text=True,
                env=ENVIRONMENT | own,
                cwd=tmp_path,
                timeout=60,
                check=False,
            )
            assert normalised(done.stdout) == normalised(shown), f"{page}: {command}\n{done.stderr}"


def test_some_page_has_a_transcript():
    assert TRANSCRIPTS
