"""Every field of a memory is declared, and what follows from the declarations agrees with it."""

from typing import Annotated, get_args, get_type_hints

import msgspec
import pytest

from mnemic.model import MemoryEntry, MemorySortOrder
from mnemic.model.entry import MEMORY_FIELDS
from mnemic.model.fields import GIVEN, HIDDEN, Kind, MemoryField, declared_fields
from tests.support.entries import entry

TYPES = {
    Kind.CONTENT: "str",
    Kind.NAME: "str",
    Kind.TYPE_NAME: "str",
    Kind.UUID: "UUID",
    Kind.TIME: "datetime",
    Kind.WHOLE: "int",
    Kind.FRACTION: "float",
    Kind.FLAG: "bool",
    Kind.TYPE: "MemoryType",
    Kind.STATUS: "MemoryStatus",
    Kind.TAGS: "tuple",
    Kind.METADATA: "dict",
    Kind.VECTOR: "Float32Array",
}


def test_every_field_of_a_memory_is_declared():
    assert [field.name for field in MEMORY_FIELDS] == list(MemoryEntry.__struct_fields__)


@pytest.mark.parametrize("field", MEMORY_FIELDS, ids=lambda field: field.name)
def test_a_declared_kind_is_that_of_the_annotated_type(field):
    annotated = get_type_hints(MemoryEntry)[field.name]
    types = [
        getattr(getattr(each, "__origin__", each), "__name__", "None")
        for each in (get_args(annotated) if type(None) in get_args(annotated) else (annotated,))
    ]
    optional = ["NoneType"] if field.is_optional else []
    assert types == [TYPES[field.kind], *optional]


def test_stored_names_differ():
    columns = [field.column for field in MEMORY_FIELDS if field.column is not None]
    assert len(set(columns)) == len(columns)
    assert {"memory_type", "is_sensitive"} <= set(columns)


def test_each_sort_order_has_a_field():
    keys = {order.value.rpartition("_")[0] for order in MemorySortOrder}
    assert {field.sort_key for field in MEMORY_FIELDS} - {None} == keys


def test_what_tells_of_a_person_or_a_text_is_hidden():
    hidden = {field.name for field in MEMORY_FIELDS if field.has(HIDDEN)}
    texts = {"content", "tags", "metadata"}
    assert hidden == texts | {"speaker", "role", "category", "scope", "source"}
    shown = repr(entry("a secret", sensitive=True, category="of mine", source="a secret.pdf"))
    assert "secret" not in shown
    assert "of mine" not in shown


def test_a_field_without_a_declaration_is_an_error():
    class Record(msgspec.Struct):
        known: Annotated[str, MemoryField(Kind.NAME, GIVEN)]
        unknown: str = ""

    with pytest.raises(TypeError, match="field unknown has no declaration"):
        declared_fields(Record)
