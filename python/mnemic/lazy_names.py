"""The names of a module, each imported when it is first asked for.

They stand once, in the module's stub, from which type checkers know them too. It consists of
imports: `from mnemic.model.entry import MemoryEntry as MemoryEntry`.
"""

import sys
from collections.abc import Callable
from types import ModuleType


def attach(
    module: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a module.

    Args:
        module: The module's `__name__`.
        file: Its `__file__`, beside which the stub lies.
    """
    modules = _modules(file.rpartition(".")[0] + ".pyi")

    def imported(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if modules[name] == module:
            return _imported(f"{module}.{name}")
        value: object = getattr(_imported(modules[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return imported, lambda: sorted(modules), sorted(modules)


def _imported(module: str) -> ModuleType:
    __import__(module)  # `python -X importtime` shows it, unlike `importlib.import_module`
    return sys.modules[module]


def _modules(stub: str) -> dict[str, str]:
    """Return the module of each name in a stub, which consists of imports."""
    with open(stub, encoding="utf-8") as file:  # noqa: PTH123 - importing pathlib takes longer
        statements = file.read().split("from ")[1:]
    modules = {}
    for statement in statements:
        module, _, names = statement.partition(" import ")
        for name in names.strip("()\n").split(","):
            if name.strip():
                modules[name.split()[0]] = module
    return modules
