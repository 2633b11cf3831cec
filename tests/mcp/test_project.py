"""Whose memories a server uses, by where it runs."""

import shutil
import subprocess

import pytest

from mnemic.mcp.project import project_of, user_here


def git(folder, *arguments):
    options = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    command = [shutil.which("git"), *options, *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "my project"
    (folder / "src" / "deep").mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder


def test_folders_of_a_repository_are_one_project(repository):
    project = project_of(repository)
    assert project.startswith("my-project-")
    assert project_of(repository / "src" / "deep") == project


def test_worktrees_of_a_repository_are_one_project(repository, tmp_path):
    git(repository, "worktree", "add", "-q", str(tmp_path / "other"))
    assert project_of(tmp_path / "other") == project_of(repository)


def test_projects_of_one_name_stay_apart(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "app" / ".git").mkdir(parents=True)
    assert project_of(tmp_path / "one" / "app") != project_of(tmp_path / "two" / "app")


def test_outside_of_a_repository_there_is_no_project(tmp_path):
    assert project_of(tmp_path) is None
    assert project_of(tmp_path / "missing") is None


def test_a_broken_link_is_the_folder_itself(tmp_path):
    (tmp_path / ".git").write_bytes(b"gitdir: /nowhere\xff")
    assert project_of(tmp_path).startswith(tmp_path.name)


def test_a_named_user_comes_before_the_environment_and_the_project(repository, monkeypatch):
    monkeypatch.delenv("MNEMIC_USER", raising=False)
    assert user_here(None, repository) == project_of(repository)
    monkeypatch.setenv("MNEMIC_USER", "ben")
    assert user_here(None, repository) == "ben"
    assert user_here("ana", repository) == "ana"
