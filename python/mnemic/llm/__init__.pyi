from mnemic.llm.adapting import AdaptedLanguageModel as AdaptedLanguageModel
from mnemic.llm.adapting import AnyLanguageModel as AnyLanguageModel
from mnemic.llm.adapting import HasComplete as HasComplete
from mnemic.llm.adapting import LanguageModel as LanguageModel
from mnemic.llm.adapting import as_language_model as as_language_model
from mnemic.llm.http import HttpLanguageModel as HttpLanguageModel
