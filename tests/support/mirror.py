"""Lists the modules without tests of their own: `python -m tests.support.mirror`.

The tests of `python/mnemic/<folder>/<module>.py` are in `tests/<folder>/test_<module>.py`, those of
`files/mnemic_files/<module>.py` in `tests/mnemic_files/test_<module>.py`. Files about one aspect,
`test_<module>_<aspect>.py`, stand beside it and do not count by themselves. Modules whose functions
have no statements (lists of names, contracts, tables, records) need no tests of their own.
"""

import ast

from tests.support.paths import ROOT

SOURCES = {"python/mnemic": "tests", "files/mnemic_files": "tests/mnemic_files"}


def own_tests():
    """Return where the tests of each module with work to test are, or would be."""
    return {
        module.relative_to(ROOT).as_posix(): path_of_tests(module, ROOT / source, ROOT / tests)
        for source, tests in SOURCES.items()
        for module in sorted((ROOT / source).rglob("*.py"))
        if module.name != "__init__.py" and has_work(ast.parse(module.read_text()))
    }


def path_of_tests(module, source, tests):
    return tests / module.relative_to(source).parent / f"test_{module.name}"


def has_work(tree):
    """Return whether a function of a module has a statement beside its docstring."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, functions)]
    return any(not is_constant(statement) for body in bodies for statement in body)


def is_constant(statement):
    """Return whether a statement is a docstring or an ellipsis."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def main():
    """Print the modules without tests of their own, and the share of the others."""
    found = own_tests()
    missing = [module for module, tests in found.items() if not tests.exists()]
    mirrored = len(found) - len(missing)
    print(*missing, sep="\n")
    print(
        f"{mirrored} of {len(found)} modules have tests of their own: {mirrored / len(found):.0%}"
    )


if __name__ == "__main__":
    main()
