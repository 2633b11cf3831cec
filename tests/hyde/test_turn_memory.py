"""A ranked memory: its shortcuts, and its content, which no repr shows."""

from uuid import UUID

from mnemic.hyde import TurnMemory
from mnemic.model.link import LinkType
from tests.support.entries import entry


def test_id_and_content_are_those_of_the_memory():
    found = TurnMemory(memory=entry(content="Prefers tabs"), score=0.5)

    assert (found.id, found.content) == (found.memory.id, "Prefers tabs")
    assert (found.relation, found.via, found.versions, found.contradicting) == (None, None, (), ())


def test_the_repr_has_no_content():
    old, other = entry(content="Prefers spaces"), entry(content="Prefers both")
    found = TurnMemory(
        memory=entry(content="Prefers tabs"),
        score=0.25,
        relation=LinkType.REFINES,
        via=UUID(int=9),
        versions=(old,),
        contradicting=(other,),
    )

    assert "Prefers" not in f"{found!r} {found} {found.__rich_repr__()}"
    assert "score=0.25" in repr(found)
    assert found.to_dict()["memory"]["content"] == "Prefers tabs"
    assert found.to_dict()["relation"] == "refines"
