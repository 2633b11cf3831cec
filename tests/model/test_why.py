"""The reasons for a score as one sentence."""

from mnemic import Memory
from mnemic.model import Why, WordMatch

PARTS = {"keyword": 0.3, "similarity": 0.25, "question": -0.1, "role": 0.0001}


def words(count, **fields):
    return tuple(WordMatch(f"word{at}", f"words{at}", **fields) for at in range(count))


def test_a_sentence_has_the_parts_that_count_and_the_words_of_the_query():
    why = Why(parts=PARTS, words=words(2))
    assert str(why) == "keyword +0.300, similarity +0.250, question -0.100; words: word0, word1"
    assert f"{why}" == str(why)
    assert repr(why).startswith("Why(parts={'keyword': 0.3,")


def test_a_sentence_without_words_or_parts_says_so():
    assert str(Why(parts={"recency": 0.5})) == "recency +0.500; words: none"
    assert str(Why(parts={"recency": 0.0})) == "no part counts; words: none"


def test_a_sentence_is_short_and_on_one_line():
    many = str(Why(parts=PARTS, words=words(20)))
    assert "word7" in many
    assert "word8" not in many
    long = str(Why(parts=PARTS, words=(WordMatch("a\nb" * 500, "x"),)))
    assert long.isprintable()
    assert len(long) < 250


def test_the_words_of_a_sensitive_memory_are_hidden():
    why = Why(parts=PARTS, words=words(2, sensitive=True), sensitive=True)
    assert str(why).endswith("question -0.100; words: <hidden>")
    assert str(Why(parts=PARTS, sensitive=True)).endswith("words: none")


def test_a_search_that_explains_gives_the_sentence():
    with Memory(":memory:", embedder=None) as memory:
        memory.add("Likes green tea")
        memory.add("Tea makes her dizzy", sensitive=True)
        found = memory.search("which tea?", explain=True)
    shown = {hit.content: str(hit.why) for hit in found}
    assert shown["Likes green tea"].startswith("keyword +0.")
    assert shown["Likes green tea"].endswith("; words: tea")
    assert shown["Tea makes her dizzy"].endswith("; words: <hidden>")
