"""Signatures as they stand in a source file, also those that type checkers alone read."""

import ast


def parameters_of(path, owner, name):
    """Return the names of a method's parameters, in order."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = (each for each in ast.walk(tree) if isinstance(each, ast.ClassDef))
    (found,) = (each for each in classes if each.name == owner)
    (method,) = (
        each for each in ast.walk(found) if isinstance(each, ast.FunctionDef) and each.name == name
    )
    return [each.arg for each in (*method.args.args, *method.args.kwonlyargs)]
