"""Stands in for packages that the pages use and the tests do not install."""

import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

from tests.support import pandas_stand_in


def put(monkeypatch):
    """Let the pages import what is not installed."""
    if find_spec("pandas") is None:
        pandas_stand_in.put(monkeypatch)
    if find_spec("fastapi") is None:
        monkeypatch.setitem(sys.modules, "fastapi", _fastapi())


def _fastapi():
    module = ModuleType("fastapi")
    module.FastAPI, module.HTTPException = _FastApi, _HttpError
    module.Depends = module.Header = lambda *_: None
    return module


class _HttpError(Exception):
    def __init__(self, status_code, detail):
        super().__init__(detail)
        self.status_code = status_code


class _FastApi:
    def __init__(self, *, lifespan):
        self.state, self.routes, self.lifespan = SimpleNamespace(), [], lifespan

    def _route(self, path):
        def kept(handler):
            self.routes.append(SimpleNamespace(path=path))
            return handler

        return kept

    get = post = delete = _route
