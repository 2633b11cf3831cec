"""HydeConfig: the options of a HyDE engine, checked."""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

import msgspec
from msgspec.structs import force_setattr

from mnemic.errors import InvalidArgumentError
from mnemic.model import validation
from mnemic.model.link import LinkType
from mnemic.model.validation import Range, check_choice
from mnemic.records import NamedFields
from mnemic.records.options import OptionsRecord, field_names, fields_of, in_camel_case
from mnemic.records.secrets import RedactedStr
from mnemic.reporting.description import must_be, quoted

InjectionForm: TypeAlias = Literal["markdown", "tagged"]
"""Form of the block of memories in a system prompt."""

SECTION = "memory"

RELATION_DECAY: Mapping[LinkType, float] = {
    LinkType.RELATED: 0.7,
    LinkType.DERIVED_FROM: 0.7,
    LinkType.CONTRADICTS: 0.9,
    LinkType.SUPERSEDES: 0.0,
    LinkType.REINFORCES: 0.7,
    LinkType.REFINES: 0.9,
}
"""Factors of a score by the link that is followed; 0 follows no such link."""

RANGES: Mapping[str, Range] = {
    "retrieval_top_k": Range(1, 100, is_whole=True),
    "retrieval_hop_depth": Range(0, 3, is_whole=True),
    "retrieval_hypothesis_count": Range(1, 10, is_whole=True),
    "injection_token_budget": Range(0, 2**53, is_whole=True),
    "timeout": Range(0, 60, unit="seconds", excludes_minimum=True),
    "min_similarity": Range(-1, 1),
    "drop_off": Range(0, 1, may_be_none=True),
    "candidates_per_hypothesis": Range(1, 100, is_whole=True, may_be_none=True),
    "max_neighbours": Range(0, 100, is_whole=True),
    "max_versions": Range(0, 20, is_whole=True),
    "max_window_characters": Range(200, 200_000, is_whole=True),
    "failure_backoff": Range(0, 3600, unit="seconds", may_be_none=True),
}
"""Ranges of the numeric options."""

_KEY = "embedding_api_key"
_DECAY = Range(0, 1)


class IgnoredOptionWarning(UserWarning):
    """Some of the given options are unknown or of the wrong type, and were left out."""


class HydeConfig(OptionsRecord, frozen=True, kw_only=True, metaclass=NamedFields):
    r"""Configuration of an `AsyncHydeEngine`.

    Whole numbers may be given as floats, as some formats have them: 25.0 is 25.

    Example:
        >>> from mnemic.hyde import HydeConfig
        >>> HydeConfig.from_toml("[memory]\nenabled = true\nretrieval_top_k = 6").retrieval_top_k
        6

    Attributes:
        enabled: Whether `AsyncHydeEngine.from_config` makes an engine.
        classifier_model: Name of the model that finds memories in conversations; kept for the
            program, since no part of the engine uses it.
        hypothesis_model: Name of the language model that writes hypotheses; "" is none.
            `retrieval_model` is another name of this option.
        embedding_model: Name of the embedding model; "" is none.
        embedding_base_url: Base URL of the embedding service; "" is the default one.
        embedding_api_key: Key of the embedding service; reprs, dicts and JSON have none.
        retrieval_top_k: Memories that the search finds at most, 1 to 100.
        retrieval_hop_depth: Links that are followed from a found memory, 0 to 3.
        retrieval_hypothesis_count: Hypotheses per turn, 1 to 10.
        injection_token_budget: Tokens of the block of memories at most; 0 is no limit.
        timeout: Seconds that a retrieval may take, above 0, at most 60.
        min_similarity: Minimum cosine similarity of a found memory, -1 to 1, inclusive. It depends
            on the embedding model. With mnemic's MiniLM 0.2 loses at most half a point of recall;
            0.3 leaves most turns without relevant memories empty, and loses up to 15 points. Of
            the multilingual model unrelated memories have .1 more.
        drop_off: Found memories whose score is below the best one minus this are left out, 0 to 1;
            None leaves none out. With MiniLM 0.3 shortens the block at little loss.
        candidates_per_hypothesis: Memories that each hypothesis proposes, 1 to 100; None is
            `retrieval_top_k`.
        max_neighbours: Linked memories at most, 0 to 100.
        relation_decay: Factor of a score for each link type, 0 to 1; 0 follows no such link. Link
            types that are not given have their defaults.
        follow_incoming: Whether links are followed from their target to their source too.
        max_versions: Earlier versions of each memory at most, 0 to 20.
        max_window_characters: Characters of the conversation in the hypothesis prompt, 200 to
            200,000.
        failure_backoff: Seconds for which a turn is not tried again after a failure, 0 to 3,600;
            None is the rest of the turn.
        injection_form: Form of the block: "markdown" or "tagged".
        identifier: Name of the section in a program's settings.
        title: Title of the section.
        description: Description of the section.

    Raises:
        InvalidArgumentError: If an option is of the wrong type or out of range; the message has
            the range.
    """

    enabled: bool = False
    classifier_model: str = ""
    hypothesis_model: str = ""
    embedding_model: str = ""
    embedding_base_url: str = ""
    embedding_api_key: str = ""
    retrieval_top_k: int = 10
    retrieval_hop_depth: int = 1
    retrieval_hypothesis_count: int = 5
    injection_token_budget: int = 0
    timeout: float = 2.0
    min_similarity: float = 0.0
    drop_off: float | None = None
    candidates_per_hypothesis: int | None = None
    max_neighbours: int = 10
    relation_decay: dict[LinkType, float] = msgspec.field(
        default_factory=lambda: dict(RELATION_DECAY)
    )
    follow_incoming: bool = False
    max_versions: int = 3
    max_window_characters: int = 8000
    failure_backoff: float | None = None
    injection_form: InjectionForm = "markdown"

    identifier: ClassVar[str] = SECTION
    title: ClassVar[str] = "Memory"
    description: ClassVar[str] = (
        "Long-term memory: models, search, and the block of memories in the system prompt."
    )
    _aliases: ClassVar[Mapping[str, str]] = {"retrieval_model": "hypothesis_model"}

    def __post_init__(self) -> None:
        """Check every option."""
        for name in self.__struct_fields__:
            force_setattr(self, name, _checked(name, getattr(self, name)))

    @property
    def retrieval_model(self) -> str:
        """Another name of `hypothesis_model`."""
        return self.hypothesis_model

    @property
    def decays(self) -> tuple[float, ...]:
        """The factors of `relation_decay` by number of the link type."""
        return tuple(self.relation_decay[kind] for kind in sorted(LinkType))

    @classmethod
    def from_dict(cls, options: object) -> Self:
        """Return a configuration from a mapping; missing options are as by default.

        Args:
            options: Names in snake_case or camelCase, values of plain types. Names may begin with
                "memory.", or be in a mapping under "memory"; other mappings beside it belong to
                other parts of the program and are not read.

        Raises:
            InvalidArgumentError: If an option is unknown or out of range.
        """
        return cls(**fields_of(cls, _section(options)))

    def updated(self, data: object, /) -> Self:
        """Return a configuration with other values of the given options.

        None changes nothing, neither in place of a value nor of all. Unknown options and values of
        a wrong type change nothing either, and are named by one `IgnoredOptionWarning`.

        Args:
            data: A mapping as of `from_dict`, or None.

        Raises:
            InvalidArgumentError: If it is no mapping, or a value is out of range.
        """
        if data is None:
            return self
        given, known = _section(data), field_names(type(self))
        if not isinstance(given, Mapping):
            raise must_be("data", "a mapping of options", given)
        fields = fields_of(type(self), {name: given[name] for name in given if name in known})
        wrong = {name for name, value in fields.items() if not _has_type(name, value)}
        ignored = [quoted(name) for name in given if name not in known or known[name] in wrong]
        if ignored:
            warnings.warn(
                f"unknown options or values of a wrong type are left out: {', '.join(ignored)}",
                IgnoredOptionWarning,
                stacklevel=2,
            )
        changed = {
            name: value for name, value in fields.items() if value is not None and name not in wrong
        }
        if "relation_decay" in changed:
            changed["relation_decay"] = {
                **self.relation_decay,
                **_decays(changed["relation_decay"]),
            }
        return msgspec.structs.replace(self, **changed)

    def to_dict(self, *, camel_case: bool = False) -> dict[str, Any]:
        """Return a new dict of plain JSON types, without the API key.

        Args:
            camel_case: Whether names are in camelCase.
        """
        made = super().to_dict()
        del made[_KEY]
        if not camel_case:
            return made
        decays = {"relationDecay": made["relation_decay"]}  # its keys are words, not names
        return {**in_camel_case(made), **decays}

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the fields for `repr` and the package rich; a key is three stars."""
        return [
            (name, RedactedStr("***") if name == _KEY and self.embedding_api_key else value)
            for name, value in super().__rich_repr__()
        ]


def _section(options: object) -> object:
    """Return options without the prefix "memory.", and those of a mapping under "memory"."""
    if not isinstance(options, Mapping):
        return options
    prefix = f"{SECTION}."
    own = options.get(SECTION)
    if not isinstance(own, Mapping):
        own = {}
        found = dict(options)
    else:
        found = {
            name: value
            for name, value in options.items()
            if name in _NAMES or not isinstance(value, Mapping)
        }
    short = {
        name.removeprefix(prefix) if isinstance(name, str) else name: value
        for name, value in found.items()
    }
    if len(short) < len(found) or short.keys() & own.keys():
        raise InvalidArgumentError(f"an option is given twice, with and without {prefix!r}")
    return {**short, **own}


def _checked(name: str, given: object) -> object:
    """Return the value of an option in its final form."""
    if name in RANGES:
        return RANGES[name].checked(name, _whole(given) if RANGES[name].is_whole else given)
    kind = HydeConfig.__annotations__[name]
    if kind is bool and not isinstance(given, bool):
        raise must_be(name, "True or False", given, show=quoted)
    if kind is str:
        return _text(name, given)
    if name == "relation_decay":
        return {**RELATION_DECAY, **_decays(given)}
    if kind is InjectionForm:
        check_choice(name, given, get_args(InjectionForm))
    return given


def _whole(given: object) -> object:
    return int(given) if isinstance(given, float) and given.is_integer() else given


def _text(name: str, given: object) -> str:
    given = validation.of_kind(name, str, "a str", given)
    checked = given.strip()
    return validation.name(name, checked) if checked else ""


def _decays(given: object) -> dict[LinkType, float]:
    if not isinstance(given, Mapping):
        raise must_be("relation_decay", "a mapping of link types to numbers", given)
    made: dict[LinkType, Any] = {}
    for kind, value in given.items():
        link = LinkType.parse(kind)
        made[link] = _DECAY.checked(f"relation_decay[{str(link)!r}]", value)
    return made


def _has_type(name: str, given: object) -> bool:
    """Return whether a value is of an option's type; it may still be out of range."""
    if given is None:
        return True
    if name in RANGES:
        is_number = validation.is_number(given)
        return isinstance(_whole(given), int) if is_number and RANGES[name].is_whole else is_number
    if name == "relation_decay":
        return isinstance(given, Mapping)
    return isinstance(given, bool if HydeConfig.__annotations__[name] is bool else str)


_NAMES = frozenset(field_names(HydeConfig))
