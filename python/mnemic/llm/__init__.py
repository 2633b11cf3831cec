"""Language models, which a caller may supply."""

from importlib import import_module
from typing import TYPE_CHECKING

from mnemic.llm.base import AnyLanguageModel, HasComplete, LanguageModel

if TYPE_CHECKING:
    from mnemic.llm.adapting import AdaptedLanguageModel, as_language_model
    from mnemic.llm.http import HttpLanguageModel

__all__ = [
    "AdaptedLanguageModel",
    "AnyLanguageModel",
    "HasComplete",
    "HttpLanguageModel",
    "LanguageModel",
    "as_language_model",
]

_LAZY = {
    "AdaptedLanguageModel": "mnemic.llm.adapting",
    "HttpLanguageModel": "mnemic.llm.http",
    "as_language_model": "mnemic.llm.adapting",
}


def __getattr__(name: str) -> object:
    """Import the forms of a language model on first use."""
    if name not in _LAZY:
        raise AttributeError(f"module 'mnemic.llm' has no attribute {name!r}")
    value: object = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
