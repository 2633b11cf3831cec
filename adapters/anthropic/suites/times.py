"""The memory tool over a memory, beside the SDK's own over a directory; medians in ms.

There are 50 files of 40 lines in five directories. Each figure is of one command.
"""

import statistics
import tempfile
import time
from pathlib import Path

from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from anthropic_mnemic import MnemicMemoryTool

from mnemic import Memory

FILES = 50
ROUNDS = 50
TEXT = "".join(f"Line {number} of some notes about a project\n" for number in range(40))


def path(number):
    return f"/memories/d{number % 5}/file{number}.md"


def each(tool, **fields):
    taken = []
    for number in range(ROUNDS):
        given = {key: value(number) if callable(value) else value for key, value in fields.items()}
        begun = time.perf_counter()
        tool.call(given)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) * 1000


def measured(tool):
    figures = {"create": each(tool, command="create", path=path, file_text=TEXT)}
    assert tool.call({"command": "view", "path": "/memories"}).count("\n") == FILES + 6
    figures["view file"] = each(tool, command="view", path=path)
    figures["view directory"] = each(tool, command="view", path="/memories")
    edit = {"command": "str_replace", "path": path}
    figures["str_replace"] = each(tool, **edit, old_str="Line 7 ", new_str="Seventh ")
    figures["insert"] = each(tool, command="insert", path=path, insert_line=3, insert_text="new")
    moved = {"old_path": path, "new_path": lambda number: f"/memories/e/{number}"}
    figures["rename"] = each(tool, command="rename", **moved)
    figures["delete"] = each(tool, command="delete", path=moved["new_path"])
    return figures


def main():
    with tempfile.TemporaryDirectory() as folder:
        kinds = {}
        for name, options in (("mnemic, MiniLM", {}), ("mnemic, words", {"embedder": None})):
            with Memory(Path(folder) / f"{len(kinds)}.db", **options) as memory:
                kinds[name] = measured(MnemicMemoryTool(memory, user_id="alice"))
        kinds["directory"] = measured(BetaLocalFilesystemMemoryTool(f"{folder}/own"))
    print("ms".ljust(16), *(name.rjust(16) for name in kinds))
    for figure in kinds["directory"]:
        print(figure.ljust(16), *(f"{found[figure]:16.3f}" for found in kinds.values()))


if __name__ == "__main__":
    main()
