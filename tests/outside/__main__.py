"""Runs other frameworks' own tests over the adapters here: `make outside`.

The source distribution of a framework is fetched from the package registry, checked by its hash and
unpacked below target/; its tests run unchanged in an environment of their own. Then the adapter is
measured beside the framework's own store.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORK = ROOT / "target" / "outside"
PYTHON = WORK / "venv" / "bin" / "python"
SUITES = {
    "langgraph": (
        "langgraph-checkpoint==4.3.2",
        "fcab8468c7e965d7055e2a35c253d73a145624ef4728b150ca7c361f4afca286",
        ("tests/__init__.py", "tests/embed_test_utils.py", "tests/test_store.py"),
    ),
}
"""Of each framework its distribution, the hash of that, and the files of the tests."""


def main():
    environment()
    for name, (distribution, digest, files) in SUITES.items():
        folder = unpacked(name, fetched(name, distribution, digest), files)
        run(
            *(PYTHON, "-m", "pytest", "-q", "-p", f"outside.{name}_plugin"),
            *("-c", os.devnull, "--rootdir", ".", "-o", "asyncio_mode=auto"),
            *("-o", "asyncio_default_fixture_loop_scope=function"),
            *("-p", "no:cacheprovider", *sys.argv[1:], "tests"),
            cwd=folder,
            env={"PYTHONPATH": str(ROOT / "tests"), "PATH": ""},
        )
        paths = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "PATH": ""}
        run(PYTHON, "-m", f"outside.{name}_times", cwd=ROOT, env=paths)


def environment():
    if not PYTHON.exists():
        run(sys.executable, "-m", "venv", WORK / "venv")
        run(PYTHON, "-m", "pip", "install", "--quiet", "--upgrade", "pip>=25.1")
    run(PYTHON, "-m", "pip", "install", "--quiet", "--group", "outside", cwd=ROOT)
    run(PYTHON, "-m", "pip", "install", "--quiet", ROOT)


def fetched(name, distribution, digest):
    wanted = WORK / f"{name}.txt"
    wanted.write_text(f"{distribution} --hash=sha256:{digest}\n", encoding="utf-8")
    options = ("--quiet", "--no-deps", "--no-binary", ":all:", "--require-hashes", "-r", wanted)
    run(PYTHON, "-m", "pip", "download", *options, "--dest", WORK / name)
    return next((WORK / name).glob("*.tar.gz"))


def unpacked(name, archive, files):
    folder = WORK / f"{name}-suite"
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive) as members:
        top = members.getnames()[0].partition("/")[0]
        for file in files:
            members.extract(f"{top}/{file}", folder, filter="data")
    return folder / top


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, **options)


if __name__ == "__main__":
    main()
