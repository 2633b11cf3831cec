"""Try what is installed, with nothing of a checkout: `python -I tools/smoke.py`, anywhere.

It tells a wheel that is whole from one that is not; what the package does is for its tests.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata, util
from pathlib import Path

import numpy as np

import mnemic
from mnemic import AsyncMemory, Memory, VectorMap, _core
from mnemic.policy import RetrievalPolicy, RetrievalRequest

LICENCES = {
    "mnemic": ("LICENSE-APACHE", "LICENSE-MIT", "LICENSE-THIRD-PARTY"),
    "mnemic-files": ("LICENSE-APACHE", "LICENSE-MIT"),
    "mnemic-minilm": ("LICENSE", "NOTICE"),
}
TYPES = ("py.typed", "__init__.pyi", "_core.pyi", "policy/__init__.pyi")
TEXTS = ("I'm allergic to peanuts", "My sister Marta marries on 20 June", "I live in Oslo")
USER = "alice"


def nothing_of_a_checkout_is_here(_: Path) -> None:
    """Expect the package inside this environment, and no compiler on the path."""
    assert Path(mnemic.__file__).is_relative_to(sys.prefix)
    assert Path(_core.__file__).is_relative_to(sys.prefix)
    assert not shutil.which("cargo")


def distributions_have_types_and_licences(_: Path) -> None:
    """Expect files for type checkers, licences, and one version."""
    for name, licences in LICENCES.items():
        files = {str(file) for file in metadata.files(name) or ()}
        assert f"{name.replace('-', '_')}/py.typed" in files
        for licence in licences:
            assert any(file.endswith(f".dist-info/licenses/{licence}") for file in files), licence
        assert metadata.version(name) == mnemic.__version__
    package = Path(mnemic.__file__).parent
    assert all((package / name).is_file() for name in TYPES)
    assert not util.find_spec("tests")


def memories_are_found_forgotten_and_kept(folder: Path) -> None:
    """Store, search by words, delete, and find the same after opening again."""
    with Memory(folder / "words.db", embedder=None) as memory:
        stored = memory.add_many(TEXTS, user_id=USER)
        assert memory.search("peanuts", user_id=USER)[0].content == TEXTS[0]
        assert not memory.search("peanuts", user_id="bob")
        memory.delete(stored[2].id, user_id=USER)
    with Memory(folder / "words.db", embedder=None) as memory:
        assert {entry.content for entry in memory.list(user_id=USER)} == set(TEXTS[:2])
        assert memory.get(stored[1].id, user_id=USER).content == TEXTS[1]


def memories_are_found_by_meaning(folder: Path) -> None:
    """Search with the local model, and write a block for a prompt."""
    with Memory(folder / "meaning.db") as memory:
        memory.add_many(TEXTS, user_id=USER)
        assert memory.search("Which foods must she avoid?", user_id=USER)[0].content == TEXTS[0]
        assert memory.contradictions("I moved to Bergen", user_id=USER)[0].content == TEXTS[2]
        request = RetrievalRequest("When does Marta marry?", session_id="s", user_id=USER)
        assert TEXTS[1] in RetrievalPolicy(memory).run(request).prompt


def coroutines_do_the_same(folder: Path) -> None:
    """Store and find in an event loop."""

    async def found() -> str:
        async with AsyncMemory(folder / "coroutines.db", embedder=None) as memory:
            await memory.add(TEXTS[0])
            return (await memory.search("peanuts"))[0].content

    assert asyncio.run(found()) == TEXTS[0]


def vectors_are_found_as_by_brute_force(folder: Path) -> None:
    """Compare a search with numpy's, before and after it was saved."""
    rows = np.random.default_rng(0).standard_normal((1000, 384)).astype(np.float32)
    vectors = VectorMap(384, metric="inner_product")
    vectors.replace(np.arange(len(rows)), rows)
    vectors.save(folder / "vectors")
    best = np.argsort(-(rows @ rows[7]))[:10]
    for each in (vectors, VectorMap.load(folder / "vectors")):
        assert (each.search(rows[7], k=10).ids == best).all()


def the_command_stores_and_finds(folder: Path) -> None:
    """Run the installed command."""
    command = Path(sys.executable).with_name("mnemic")

    def printed(*arguments: str) -> str:
        place = ("--db", str(folder / "command.db"))
        done = subprocess.run(
            [command, *arguments, *place], check=True, capture_output=True, text=True
        )
        return done.stdout

    identity = printed("add", TEXTS[0]).strip()
    found = printed("search", "which food must be avoided").strip().split("\t")
    assert (found[1], found[3]) == (TEXTS[0], identity)
    assert printed("forget", identity, "--json").startswith('{"at": ')


CHECKS: tuple[Callable[[Path], None], ...] = (
    nothing_of_a_checkout_is_here,
    distributions_have_types_and_licences,
    memories_are_found_forgotten_and_kept,
    memories_are_found_by_meaning,
    coroutines_do_the_same,
    vectors_are_found_as_by_brute_force,
    the_command_stores_and_finds,
)

if __name__ == "__main__":
    for check in CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder))
        print(check.__name__.replace("_", " "))
