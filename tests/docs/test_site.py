"""The site: what `make site` lays out for it."""

import re

import pytest

from tests.support.pages import PAGES, REFERENCE, text_of

site = pytest.importorskip("tools.site", reason="tools/ comes with the repository")


INDEX = """\
# All

## Start

- [One](start/one.md): first

### More

- [Two](start/two.md)

## Reference
"""
LISTS = "\n- a\n  - b\n  c\n\n  d\n\n```yaml\ne:\n  - f\n```\n"


@pytest.fixture
def laid_out(tmp_path, monkeypatch):
    """Lay out a repository of few pages; return the folder with the site's."""
    files = {
        "pyproject.toml": '[project.urls]\nRepository = "https://host/mnemic"\n',
        "README.md": "# mnemic\n\n<!-- hidden -->\n[docs](docs/README.md) [code](examples)\n",
        "tools/site.css": "",
        "docs/README.md": INDEX,
        "docs/start/one.md": "# One\n\n`[a](b.py)` [here](#one) [up](../../LICENSE#x)\n" + LISTS,
        "docs/project/plot.svg": "<svg/>",
        "docs/project/design.md": "# Design\n",
        "docs/reference/api/README.md": "- **[Memory](memory.md)**. [a](../x.md)\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(site, "ROOT", tmp_path)
    monkeypatch.setattr(site, "PAGES", tmp_path / "target")
    site.main()
    return tmp_path / "target"


def test_links_lead_to_pages_of_the_site_or_to_where_the_code_is(laid_out):
    address = "https://host/mnemic/blob/main"
    page = (laid_out / "README.md").read_text()
    assert page == f"# mnemic\n\n[docs](docs/README.md) [code]({address}/examples)\n"
    page = (laid_out / "docs/start/one.md").read_text()
    assert page.startswith(f"# One\n\n`[a](b.py)` [here](#one) [up]({address}/LICENSE#x)\n")
    assert (laid_out / "docs/project/plot.svg").exists()


def test_lists_in_lists_get_the_margin_that_the_site_wants_and_code_keeps_its_own(laid_out):
    page = (laid_out / "docs/start/one.md").read_text()
    assert page.endswith("\n- a\n    - b\n  c\n\n    d\n\n```yaml\ne:\n  - f\n```\n")


def test_pages_for_contributors_are_not_searched(laid_out):
    for page, is_searched in (("docs/project/design.md", False), ("README.md", True)):
        text = (laid_out / page).read_text()
        assert text.startswith("---\nsearch:\n  exclude: true\n---\n# ") is not is_searched


def test_the_navigation_has_the_sections_of_the_index_and_the_public_names(laid_out):
    assert (laid_out / "SUMMARY.md").read_text().splitlines()[2:] == [
        "- Start",
        "    - [One](docs/start/one.md)",
        "    - More",
        "        - [Two](docs/start/two.md)",
        "- Reference",
        "    - Every public name",
        "        - [Memory](docs/reference/api/memory.md)",
    ]


def test_every_page_is_in_the_navigation_once():
    names = text_of("docs/reference/api/README.md")
    entries = site.entries("docs/README.md", site.LISTED.findall(text_of("docs/README.md")), "")
    entries = [*entries, *site.entries(site.NAMES, site.NAMED.findall(names), "")]
    places = [re.search(r"\((.+)\)", entry)[1] for entry in entries]
    assert len(set(places)) == len(places)
    listed = {page for page in [*PAGES, *REFERENCE] if page.startswith("docs/")}
    assert listed - {"docs/README.md", site.NAMES} <= set(places)
