"""The public names of the package, their objects and signatures, read without importing it."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import griffe
from griffe import Alias, Attribute, Class, Function, Object, ParameterKind

from tools.reference.page_list import INTERNAL, MADE_BY_CALLS

ROOT = Path(__file__).parents[2]
PACKAGE = "mnemic"
FILES = "mnemic_files"
ERRORS = "mnemic.errors"
ALIASES = "mnemic.annotations"
MODULES = (
    PACKAGE,
    ERRORS,
    "mnemic.events",
    "mnemic.model",
    "mnemic.embed",
    "mnemic.llm",
    "mnemic.vectors",
    "mnemic.policy",
    "mnemic.hyde",
    "mnemic.compat",
    "mnemic.adapters",
    ALIASES,
    FILES,
)
_WIDTH = 88
_STARS = {ParameterKind.var_positional: "*", ParameterKind.var_keyword: "**"}
_EMPTY = {"dict": "{}", "list": "[]", "tuple": "()"}


class Public(NamedTuple):
    """A public name, the module it is imported from, and its object."""

    name: str
    module: str
    object: Object

    @property
    def path(self) -> str:
        """The path of the object where it is defined."""
        return self.object.canonical_path

    @property
    def is_constructed(self) -> bool:
        """Whether programs call the class."""
        is_error = self.module == ERRORS or self.path.startswith(f"{FILES}.errors.")
        return not is_error and self.name not in MADE_BY_CALLS


class _Unreadable(logging.Handler):
    """Keeps the messages about docstrings that cannot be read."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message, unless it is about the arguments of a class with `__new__` alone."""
        message = record.getMessage()
        if "parameter" not in message.lower():
            self.messages.append(message)


def unreadable_docstrings() -> list[str]:
    """Return a list that grows with the messages about docstrings."""
    handler = _Unreadable()
    logger = logging.getLogger("griffe")
    logger.handlers, logger.propagate = [handler], False
    return handler.messages


def loaded_package() -> griffe.Module:
    """Read the sources and stubs of the package, and of the memory files."""
    loader = griffe.GriffeLoader(
        search_paths=[ROOT / "python", ROOT / "files"],
        docstring_parser="google",
        allow_inspection=False,
    )
    package = loader.load(PACKAGE, submodules=True)
    loader.load(FILES, submodules=True)
    loader.resolve_aliases(implicit=False, external=False)
    if not isinstance(package, griffe.Module):
        raise TypeError(f"{PACKAGE} is no package")
    return package


def object_at(package: griffe.Module, path: str) -> Object:
    """Return the object at a path such as `mnemic.errors.StoreError`."""
    return target(package.modules_collection[path])


def public_names(package: griffe.Module) -> Iterator[Public]:
    """Yield every public name once, with the first module that has it."""
    seen = set()
    for path in MODULES:
        module = package if path == PACKAGE else object_at(package, path)
        for name in module.exports or _names_of_stub(module) or _own_names(module):
            public = Public(str(name), path, target(module[str(name)]))
            if not public.object.is_module and public.path not in seen:
                seen.add(public.path)
                yield public


def _names_of_stub(module: Object) -> list[str]:
    """Return the names of a module that has them in its stub; see `mnemic.lazy_names`."""
    has_stub = isinstance(module.filepath, Path) and module.filepath.with_suffix(".pyi").exists()
    names = [name for name, member in module.members.items() if member.is_alias]
    return sorted(set(names) - {"attach"}) if has_stub else []


def _own_names(module: Object) -> list[str]:
    return [
        name
        for name, member in module.members.items()
        if is_shown(name) and not member.is_alias and (member.is_class or member.is_attribute)
    ]


def is_shown(name: str) -> bool:
    """Whether a name is public."""
    return not name.startswith("_")


def target(thing: Object | Alias) -> Object:
    """Return the object behind a name."""
    return thing.final_target if isinstance(thing, Alias) else thing


def is_property(member: Object) -> bool:
    """Whether a member is a property."""
    return "property" in member.labels


def enum_members(thing: Class) -> list[Attribute] | None:
    """Return the members of an enum; None of another class."""
    bases = [str(base).rpartition(".")[2] for base in thing.bases]
    if not any(base.endswith(("Enum", "Flag")) for base in bases):
        return None
    members = [target(member) for name, member in thing.members.items() if is_shown(name)]
    return [each for each in members if isinstance(each, Attribute) and not is_property(each)]


def fields_of(thing: Class) -> dict[str, Attribute]:
    """Return the fields of a record by name, inherited ones first."""
    members = {name: target(member) for name, member in thing.all_members.items()}
    return {
        name: member
        for name, member in members.items()
        if is_shown(name) and isinstance(member, Attribute) and _is_field(member)
    }


def _is_field(member: Attribute) -> bool:
    annotation = member.annotation
    return annotation is not None and not is_property(member) and "ClassVar" not in str(annotation)


def constructor_of(thing: Class) -> Function | None:
    """Return the constructor; None of a record, whose fields are listed."""
    for name in ("__init__", "__new__"):
        found = thing.all_members.get(name)
        if found is not None and isinstance(made := target(found), Function) and made.runtime:
            return made
    return None


def methods_and_properties(thing: Class) -> Iterator[tuple[str, Object]]:
    """Yield public members but fields; a plain verb is that of its coroutine."""
    for name, member in thing.all_members.items():
        found = _function_of(target(member))
        if is_shown(name) and found is not None and not _is_internal(found):
            yield name, found


def _function_of(member: Object) -> Object | None:
    if isinstance(member, Function) or is_property(member):
        return member
    value = getattr(member, "value", None)
    if isinstance(value, griffe.ExprName) and member.parent is not None:
        same = member.parent.members.get(value.name)  # another name of a method
        return same if isinstance(same, Function) else None
    if isinstance(value, griffe.ExprCall) and str(value.function) == "cast":
        value = value.arguments[1]
    if not isinstance(value, griffe.ExprCall) or str(value.function) != "sync_method":
        return None
    owner, _, name = str(value.arguments[0]).rpartition(".")
    home = target(member.module.modules_collection[member.module.resolve(owner)])
    return target(home.all_members[name])


def _is_internal(method: Object) -> bool:
    return ".".join(method.canonical_path.split(".")[-2:]) in INTERNAL


def is_plain(thing: Class, name: str) -> bool:
    """Whether a method is made of a coroutine, so that it is called without `await`."""
    return not isinstance(target(thing.all_members[name]), Function)


def parameters_of(function: Function) -> list[griffe.Parameter]:
    """Return the parameters that a caller gives."""
    return [p for p in function.parameters if p.name not in {"self", "cls"} and is_shown(p.name)]


def names_in(function: Function) -> Iterator[griffe.ExprName]:
    """Yield the names in the annotations of a function."""
    annotations = [parameter.annotation for parameter in parameters_of(function)]
    for annotation in [*annotations, function.returns]:
        if isinstance(annotation, griffe.Expr):
            for part in annotation.iterate(flat=True):
                if isinstance(part, griffe.ExprName):
                    yield part


def signature_of(name: str, function: Function, *, returns: bool = True) -> str:
    """Return a function's line as in a stub, in several lines where it is long."""
    parts = list(_parameter_list(parameters_of(function)))
    end = f" -> {annotation_text(function.returns)}" if returns and function.returns else ""
    head = f"{'async ' if 'async' in function.labels else ''}{name}"
    line = f"{head}({', '.join(parts)}){end}"
    if len(line) <= _WIDTH:
        return line
    return f"{head}(\n" + "".join(f"    {part},\n" for part in parts) + f"){end}"


def _parameter_list(parameters: list[griffe.Parameter]) -> Iterator[str]:
    before = None
    for parameter in parameters:
        kind = parameter.kind
        if before is ParameterKind.positional_only and kind is not before:
            yield "/"
        if kind is ParameterKind.keyword_only and before not in {kind, *_STARS}:
            yield "*"
        yield _parameter_text(parameter)
        before = kind
    if before is ParameterKind.positional_only:
        yield "/"


def _parameter_text(parameter: griffe.Parameter) -> str:
    stars = _STARS.get(parameter.kind, "") if parameter.kind else ""
    text = stars + parameter.name
    if parameter.annotation is not None:
        text += f": {annotation_text(parameter.annotation)}"
    if parameter.default is not None and not stars:
        text += f" = {_quoted(parameter.default)}"
    return text


def annotation_text(annotation: object) -> str:
    """Return an annotation without the declaration of a stored field."""
    text = _quoted(annotation) if annotation is not None else ""
    inside = re.fullmatch(r"Annotated\[(.*?), MemoryField\(.*\)\]", text, re.DOTALL)
    return inside[1] if inside else text


def value_text(value: object) -> str:
    """Return a default as it is written, "…" for one that is made by a call."""
    text = _quoted(value)
    factory = re.search(r"default_factory=(\w+)", text)
    if factory:
        return _EMPTY.get(factory[1], f"{factory[1]}()")
    return "…" if text.startswith(("msgspec.field", "field(", "_")) else text


def _quoted(value: object) -> str:
    return str(value).replace("'", '"')
