"""The distribution of memory files beside the package's."""

import tomllib

import pytest

import mnemic
from tests.support.paths import ROOT


@pytest.mark.requirement("C218")
def test_it_has_the_version_of_the_package_and_needs_its_line_of_versions():
    text = (ROOT / "files" / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    major, minor, _ = mnemic.__version__.split(".")
    assert project["version"] == mnemic.__version__
    assert f"mnemic=={major}.{minor}.*" in project["dependencies"]
