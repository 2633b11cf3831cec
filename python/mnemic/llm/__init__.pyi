from mnemic.llm.adapting import AdaptedLanguageModel as AdaptedLanguageModel
from mnemic.llm.adapting import as_language_model as as_language_model
from mnemic.llm.base import AnyLanguageModel as AnyLanguageModel
from mnemic.llm.base import HasComplete as HasComplete
from mnemic.llm.base import LanguageModel as LanguageModel
from mnemic.llm.http import HttpLanguageModel as HttpLanguageModel
