import pytest
from hermes_mnemic import MnemicMemoryProvider, provider


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Hermes's home, whose files are closed afterwards, so that the next opening reads them."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    yield tmp_path
    provider._opened.cache_clear()


@pytest.fixture
def session(home):
    """A function that begins a session: of the command line, unless it is told another platform."""

    def begin(session_id="now", **named):
        made = MnemicMemoryProvider()
        made.initialize(session_id, hermes_home=str(home), **{"platform": "cli"} | named)
        return made

    return begin
