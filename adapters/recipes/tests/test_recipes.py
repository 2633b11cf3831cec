import importlib
import re
from pathlib import Path

import pytest
from model_server import KEY, ModelServer, texts

PAGE = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
RECIPES = ["openai", "anthropic", "ollama", "litellm", "smolagents", "dspy", "agno"]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the page's blocks define: a module in a folder of its own, beside its memory."""
    folder = tmp_path_factory.mktemp("recipes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        patch.setenv("AGNO_TELEMETRY", "false")
        patch.setenv("DSPY_CACHEDIR", str(folder / "dspy"))
        Path("page.py").write_text("\n".join(BLOCKS), encoding="utf-8")  # smolagents reads it
        page = importlib.import_module("page")
        yield vars(page)
        page.memory.close()


@pytest.fixture
def server(monkeypatch):
    """A model on loopback, to which the environment leads all clients."""
    with ModelServer() as model:
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            monkeypatch.setenv(name, f"{model.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        monkeypatch.setenv("OLLAMA_HOST", model.url)
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.setenv(name, KEY)
        yield model
        model.shutdown()


def answer_of(recipe, said):
    """Return what the model is to answer: code for the agent that writes it, else plain text."""
    if recipe == "dspy":
        return f"[[ ## answer ## ]]\nno {said}\n\n[[ ## completed ## ]]"
    return f"no {said}"


@pytest.mark.parametrize("recipe", [each for each in RECIPES if each != "smolagents"])
def test_what_the_user_said_before_reaches_the_model(recipe, names, server):
    server.answer = lambda _: answer_of(recipe, "peanuts")
    assert names[f"reply_by_{recipe}"]("Which foods must I avoid?") == "no peanuts"
    assert "allergic to peanuts" in texts(server.requests[-1][1])


def test_an_agent_that_writes_code_recalls_by_a_tool(names, server):
    calls = iter(
        [
            "<code>\nprint(recall('Which foods must I avoid?'))\n</code>",
            "<code>\nremember('I like rain')\nfinal_answer('no peanuts')\n</code>",
        ]
    )
    server.answer = lambda _: next(calls)
    assert names["reply_by_smolagents"]("Which foods must I avoid?") == "no peanuts"
    assert "allergic to peanuts" in texts(server.requests[-1][1])
    assert names["mine"].search("rain", limit=1)[0].content == "I like rain"


@pytest.mark.parametrize("recipe", [each for each in RECIPES if each != "smolagents"])
def test_another_users_memories_reach_no_prompt(recipe, names, server):
    names["memory"].add("I'm allergic to walnuts", user_id="ben")
    server.answer = lambda _: answer_of(recipe, "nuts")
    names[f"reply_by_{recipe}"]("Am I allergic to walnuts?")
    assert server.requests
    assert not any("I'm allergic to walnuts" in texts(each) for _, each in server.requests)


def test_every_recipe_of_the_page_is_tried(names):
    assert {name for name in names if name.startswith("reply_by_")} == {
        f"reply_by_{recipe}" for recipe in RECIPES
    }
