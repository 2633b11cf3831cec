"""Front matter of notes."""

import pytest

from mnemic.importers.front_matter import NESTED, parted
from mnemic.importers.record import Lost


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("a: b: c", {"a": "b: c"}),
        ('a: "x: \\"y\\"" ', {"a": 'x: "y"'}),
        ("a: 'it''s'", {"a": "it's"}),
        ("a: [x, 'y z', 3]", {"a": ["x", "y z", "3"]}),
        ('a: ["x", {"y": 1}]', {"a": ["x", {"y": 1}]}),
        ("a: 3 # three", {"a": 3}),
        ("a: true", {"a": True}),
        ("a: NaN", {"a": "NaN"}),
        ("a: ~", {"a": None}),
        ("a:\n- x\n- y", {"a": ["x", "y"]}),
        ("a:\n  - x", {"a": ["x"]}),
        ("a: [" + "[" * 100_000 + "]", {"a": []}),
    ],
)
def test_front_matter_is_read_as_people_write_it(line, values):
    lost = Lost()
    assert parted(f"---\n{line}\n---\nbody", lost)[0].keys() == values.keys()
    found, body = parted(f"\ufeff---\r\n{line}\r\n---\r\n\r\nbody", lost)
    assert body == "body"
    if len(line) < 1000:
        assert found == values
    assert not lost


def test_nested_front_matter_is_counted():
    lost = Lost()
    assert parted("---\na:\n  b: 1\nc: 2\n---\n", lost)[0] == {"a": None, "c": 2}
    assert lost == {NESTED: 1}
