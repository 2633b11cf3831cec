"""A memory of a turn: a hit with its earlier versions; sensitive ones are in no repr."""

from uuid import UUID

from mnemic.hyde import TurnMemory
from mnemic.model.hit import Hit
from mnemic.model.link import LinkType
from tests.support.entries import entry


def test_it_is_a_hit_whose_entry_has_its_documented_name_too():
    found = TurnMemory(entry=entry(content="Prefers tabs"), score=0.5)

    assert isinstance(found, Hit)
    assert found.memory is found.entry
    assert (found.id, found.content) == (found.entry.id, "Prefers tabs")
    assert (found.relation, found.via, found.versions, found.contradicting) == (None, None, (), ())


def test_the_repr_hides_what_is_sensitive():
    old = entry(content="Prefers spaces", sensitive=True)
    other = entry(content="Prefers both", sensitive=True)
    found = TurnMemory(
        entry=entry(content="Prefers tabs", sensitive=True),
        score=0.25,
        relation=LinkType.REFINES,
        via=UUID(int=9),
        versions=(old,),
        contradicting=(other,),
    )

    assert "Prefers" not in f"{found!r} {found} {found.__rich_repr__()}"
    assert "score=0.25" in repr(found)
    assert found.to_dict()["entry"]["content"] == "Prefers tabs"
    assert found.to_dict()["relation"] == "refines"
