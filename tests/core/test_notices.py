"""The notices of what is compiled into the extension."""

import re
import shutil
import subprocess

import pytest

from tests.support.paths import ROOT

WITHOUT_NOTICE = re.compile(r"Apache-2\.0|Unlicense")
"""LICENSE-APACHE holds for crates that may be used under it; the other asks for nothing."""
NOTICES = (ROOT / "LICENSE-THIRD-PARTY").read_text(encoding="utf-8")
TITLES = " ".join(re.findall(r"^== (.*) ==$", NOTICES, re.MULTILINE))


@pytest.mark.skipif(not shutil.which("cargo"), reason="cargo knows the crates")
def test_each_crate_that_asks_for_its_notice_has_one():
    command = [
        "cargo",
        "tree",
        "--locked",
        "--package",
        "mnemic-py",
        "--edges",
        "normal,no-proc-macro",
    ]
    command += ["--prefix", "none", "--format", "{p}\t{l}"]
    tree = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    licences = {line.split()[0]: line.split("\t")[1] for line in tree.stdout.splitlines()}
    asking = {name for name, licence in licences.items() if not WITHOUT_NOTICE.search(licence)}
    assert {"numpy", "frostem", "icu_casemap"} <= asking
    named = {name for name in asking if re.search(rf"\b{name}\b", TITLES)}
    assert {licences[name].removesuffix(" (*)") for name in asking - named} == {"Unicode-3.0"}
    assert "Unicode-3.0" in TITLES
