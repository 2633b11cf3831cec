"""The notes of Basic Memory, as it wrote them."""

from mnemic import MemoryType


def test_basic_memorys_observations_are_memories_and_the_rest_of_a_note_is_one(bring, fixtures):
    report, stored = bring("basic-memory", fixtures / "basic-memory")
    assert report.lost == {"relations, which stay in the text and become no links": 2}
    method = stored["Coffee: Pour over gives a clean flavour #brewing (tried in May)"]
    assert (method.category, method.tags) == ("method", ("coffee", "morning", "brewing"))
    assert stored["Coffee: Ana takes no sugar"].type is MemoryType.PREFERENCE
    assert stored["Tea: Ben prefers green tea"].metadata["note"] == "kitchen/drinks/tea"
    assert "# Tea\n\n- [ ] buy a kettle" in stored  # an open task is no observation
    ferry = stored["# Ferry\n\nThe ferry leaves at noon, see [the table](https://example.invalid)."]
    assert ferry.tags == ("trips",)
    (coffee,) = (text for text in stored if text.startswith("# Coffee"))
    assert "before eight" in coffee
    assert "- grown_in [[Ethiopia]]" in coffee
    assert "sugar" not in coffee
