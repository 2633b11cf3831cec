"""Documents are stored in parts, and replaced and deleted as one."""

import io
from functools import partial

import pytest

from mnemic import Memory, errors
from mnemic.events import MemoryForgottenEvent
from tests.support.embedders import WordEmbedder
from tests.support.failing_embedders import FailingEmbedder
from tests.support.how_to_questions import QUESTIONS
from tests.support.paths import ROOT
from tests.support.places import STORES, Places
from tests.support.sealing import encryption
from tests.support.threads import run_together

DOCS = ROOT / "docs"
NAME = "how-to/billing.md"
TEXT = """\
# Billing

Invoices come in May.

## Cancel

Any time, by a letter.

## Refunds

Within a week.
"""
CANCEL = ("Billing", "Cancel")


@pytest.fixture(params=STORES)
def memory(request, tmp_path):
    with Places(request.param, tmp_path) as places:
        yield places.opened(embedder=WordEmbedder())


def parts_of(memory, name=NAME, **options):
    """Return the parts of a document in its order."""
    entries = memory.list(limit=100, filters={"source": name}, **options)
    return sorted(entries, key=lambda entry: entry.position)


def contents(memory, name=NAME, **options):
    return [entry.content for entry in parts_of(memory, name, **options)]


def paths(entries):
    return [tuple(entry.metadata["document"]["headings"]) for entry in entries]


def test_each_part_knows_its_document_its_headings_and_its_place(memory):
    added = memory.add_document(TEXT, name=NAME, user_id="ana", tags=["help"], metadata={"a": 1})
    assert [entry.content for entry in added] == contents(memory, user_id="ana")
    assert paths(added) == [("Billing",), CANCEL, ("Billing", "Refunds")]
    assert [entry.position for entry in added] == [0, 1, 2]
    assert {(entry.source, entry.tags, entry.metadata["a"]) for entry in added} == {
        (NAME, ("help",), 1)
    }
    (hit, *_) = memory.search("cancel by letter", user_id="ana")
    assert (hit.entry.source, hit.entry.position) == (NAME, 1)
    assert paths([hit.entry]) == [CANCEL]


def test_filters_select_by_document_and_by_heading(memory):
    memory.add_document(TEXT, name=NAME)
    memory.add_document(TEXT, name="other.md")
    memory.add("Billing is fun")
    found = memory.search("billing", filters={"source": NAME})
    assert {hit.entry.source for hit in found} == {NAME}
    refunds = {"metadata": {"document": {"headings": {"any": ["Refunds"]}}}}
    assert memory.count(filters=refunds) == 2


def test_the_same_document_again_changes_nothing(memory):
    first = memory.add_document(TEXT, name=NAME, importance=0.7)
    again = memory.add_document(TEXT, name=NAME, importance=0.7)
    assert list(again) == list(first)
    assert {entry.version for entry in again} == {1}
    assert memory.verify().problems == ()


def test_parts_that_stay_keep_their_ids_and_the_others_go(memory):
    invoices, cancel, refunds = memory.add_document(TEXT, name=NAME)
    text = TEXT.replace("by a letter", "online").replace("# Billing", "News.\n\n# Billing")
    added = memory.add_document(text, name=NAME)
    assert [entry.content for entry in added] == contents(memory)
    assert [entry.id for entry in added[1:2]] == [invoices.id]
    assert added[3].id == refunds.id
    assert cancel.id not in {entry.id for entry in added}
    assert memory.delete_many([cancel.id], permanent=True) == 0
    assert memory.search("online", limit=1)[0].id == added[2].id
    assert memory.verify().problems == ()


def test_only_new_parts_are_embedded():
    embedder = WordEmbedder()
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add_document(TEXT, name=NAME)
        embedder.texts.clear()
        memory.add_document(f"Intro.\n\n{TEXT}", name=NAME)
        assert embedder.texts == ["Intro."]
        assert memory.search("within a week", limit=1)[0].entry.position == 3


def test_equal_parts_are_kept_apart(memory):
    text = "# Note\n\nDone.\n\n# Note\n\nDone.\n"
    first = memory.add_document(text, name=NAME)
    again = memory.add_document(text, name=NAME)
    assert [entry.id for entry in first] == [entry.id for entry in again]
    assert len({entry.id for entry in first}) == 2


def test_what_a_caller_changed_in_a_part_is_replaced_too(memory):
    first = memory.add_document(TEXT, name=NAME)
    memory.update(first[0].id, importance=0.9)
    memory.delete(first[1].id)
    again = memory.add_document(TEXT, name=NAME)
    assert [entry.id for entry in again] == [entry.id for entry in first]
    assert [entry.importance for entry in again] == [0.5] * 3
    assert contents(memory) == [entry.content for entry in first]


def test_deleting_a_document_deletes_its_parts_and_nothing_else(memory):
    memory.add_document(TEXT, name=NAME)
    memory.add_document(TEXT, name="other.md")
    memory.add({"content": "I like the billing page", "source": NAME})
    assert memory.delete_document(NAME) == 3
    assert memory.count() == 4
    assert memory.delete_document(NAME) == 0
    assert memory.delete_document(NAME, permanent=True) == 3


def test_a_memory_that_names_the_document_as_its_source_stays(memory):
    mine = memory.add({"content": "From the billing page", "source": NAME})
    memory.add_document(TEXT, name=NAME)
    memory.add_document("Short.", name=NAME)
    memory.delete_document(NAME, permanent=True)
    assert [entry.id for entry in memory.list()] == [mine.id]


def test_documents_of_users_with_one_name_are_apart(memory):
    memory.add_document(TEXT, name=NAME, user_id="ana")
    memory.add_document("Ben's own.", name=NAME, user_id="ben")
    memory.add_document("Nobody's.", name=NAME)
    assert len(contents(memory, user_id="ana")) == 3
    assert contents(memory, user_id="ben") == ["Ben's own."]
    assert memory.delete_document(NAME, user_id="ben") == 1
    assert len(contents(memory, user_id="ana")) == 3
    assert contents(memory) == ["Nobody's."]


def test_a_view_holds_its_documents(memory):
    mine = memory.scoped(user_id="ana", project_id="p")
    mine.add_document(TEXT, name=NAME)
    memory.scoped(user_id="ana", project_id="q").add_document("Of q.", name=NAME)
    assert len(contents(mine)) == 3
    assert {entry.project_id for entry in parts_of(mine)} == {"p"}


@pytest.mark.parametrize("kind", STORES)
def test_a_document_is_stored_whole_or_not_at_all(kind, tmp_path):
    embedder = FailingEmbedder()
    with Places(kind, tmp_path) as places:
        memory = places.opened(embedder=embedder, quota=2_000)
        first = memory.add_document(TEXT, name=NAME)
        embedder.is_down = True
        with pytest.raises(errors.EmbeddingError):
            memory.add_document("Something else.", name=NAME)
        embedder.is_down = False
        with pytest.raises(errors.StorageQuotaExceededError):
            memory.add_document(f"# New\n\n{'word ' * 400}\n\n{TEXT}", name=NAME)
        assert parts_of(memory) == list(first)
        memory.add_document(f"# New\n\n{'word ' * 380}", name=NAME)  # in the space of the old one
        assert memory.verify().problems == ()


@pytest.mark.parametrize("kind", STORES)
def test_of_two_at_once_one_is_whole(kind, tmp_path):
    texts = ["\n\n".join(f"# {n}\n\n{who} {n}" for n in range(20)) for who in ("ana", "ben")]
    shared = "# Shared\n\nBoth have this.\n\n"
    with Places(kind, tmp_path) as places:
        memory = places.opened(embedder=WordEmbedder())
        memory.add_document(shared + texts[0], name=NAME)
        for _ in range(5):
            calls = (partial(memory.add_document, shared + text, name=NAME) for text in texts)
            run_together(*calls)
            stored = "\n\n".join(contents(memory))
            assert stored in [shared + text for text in texts]


@pytest.mark.parametrize("kind", STORES)
def test_a_sealed_document_is_replaced_as_one(kind, tmp_path):
    with Places(kind, tmp_path) as places:
        memory = places.opened(embedder=WordEmbedder(), encryption=encryption())
        first = memory.add_document(TEXT, name=NAME, sensitive=True)
        assert all(entry.is_encrypted for entry in first)
        again = memory.add_document(TEXT.replace("week", "year"), name=NAME, sensitive=True)
        assert list(again[:2]) == list(first[:2])
        assert [entry.version for entry in again] == [1, 1, 1]
        assert len(contents(memory)) == 3
        assert memory.delete_document(NAME, permanent=True) == 3
        assert memory.verify().problems == ()


def test_gone_parts_are_told_as_deleted_ones():
    with Memory(":memory:", embedder=None) as memory:
        told = []
        memory.events.subscribe(MemoryForgottenEvent, told.append)
        first = memory.add_document(TEXT, name=NAME)
        memory.add_document("Short.", name=NAME)
        assert {event.entry_id for event in told} == {entry.id for entry in first}
        assert all(event.permanent for event in told)


def test_the_bytes_of_gone_parts_are_erased(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None) as memory:
        memory.add_document(f"{TEXT}\nzebra crossing", name=NAME)
        assert any(b"zebra" in file.read_bytes() for file in tmp_path.glob("a.db*"))
        memory.add_document(TEXT, name=NAME)
        assert not any(b"zebra" in file.read_bytes() for file in tmp_path.glob("a.db*"))


def test_what_cannot_be_a_document_is_refused():
    with Memory(":memory:", embedder=None) as memory:
        memory.add_document(TEXT, name=NAME)
        for text in ("", " \n\t\n", None, b"bytes", "nul \0", "\ud800"):
            with pytest.raises(errors.InvalidEntryError):
                memory.add_document(text, name=NAME)
        for name in ("", None, 5, "a\nb"):
            with pytest.raises(errors.InvalidEntryError):
                memory.add_document("text", name=name)
            with pytest.raises(errors.InvalidEntryError):
                memory.delete_document(name)
        with pytest.raises(errors.InvalidEntryError, match="rename it"):
            memory.add_document("text", name=NAME, metadata={"document": "mine"})
        with pytest.raises(errors.InvalidEntryError):
            memory.add_document("text", name=NAME, importance=2)
        assert memory.count() == 3


def test_a_document_outlives_an_export_and_an_import():
    with Memory(":memory:", embedder=None) as old, Memory(":memory:", embedder=None) as new:
        first = old.add_document(TEXT, name=NAME, user_id="ana")
        file = io.StringIO()
        old.export(file, user_id="ana")
        file.seek(0)
        new.import_(file)
        again = new.add_document(TEXT, name=NAME, user_id="ana")
        assert [entry.id for entry in again] == [entry.id for entry in first]
        assert {entry.version for entry in again} == {1}
        assert new.delete_document(NAME, user_id="ana") == 3


def test_a_memory_that_is_only_read_takes_no_document(tmp_path):
    path = tmp_path / "a.db"
    with Memory(path, embedder=None) as memory:
        memory.add_document(TEXT, name=NAME)
    with Memory(path, embedder=None, read_only=True) as memory:
        with pytest.raises(errors.ReadOnlyError):
            memory.add_document("Other.", name=NAME)
        assert memory.count() == 3


@pytest.fixture(scope="module")
def cited():
    """Return the pages that the context of each newcomer's question cites, the best first."""
    pytest.importorskip("mnemic_minilm")
    with Memory(":memory:") as memory:
        for page in QUESTIONS:
            text = (DOCS / f"{page}.md").read_text("utf-8")
            memory.add_document(text, name=page)
        return {
            page: [hit.entry.source for hit in memory.context(question).hits]
            for page, question in QUESTIONS.items()
        }


def test_each_how_to_page_has_a_question():
    pages = [page for kind in ("build", "run", "tune") for page in (DOCS / kind).glob("*.md")]
    assert set(QUESTIONS) == {f"{page.parent.name}/{page.stem}" for page in pages}


def test_the_context_of_all_newcomers_questions_but_one_cites_the_page_that_answers(cited):
    missed = {page for page, pages in cited.items() if page not in pages}
    assert len(missed) <= 1, missed


def test_the_page_that_answers_is_cited_first_for_most_questions(cited):
    first = {page for page, pages in cited.items() if pages[:1] == [page]}
    assert 3 * len(first) >= 2 * len(cited), set(cited) - first
