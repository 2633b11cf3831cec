"""Forms of the public records: one line, plain types, a data frame, HTML, and tables of rich."""

from mnemic.records.base import (
    ContentFirst,
    Listing,
    NamedFields,
    Record,
    RecordList,
    Redacted,
    with_checked,
    without_aliases,
)

__all__ = [
    "ContentFirst",
    "Listing",
    "NamedFields",
    "Record",
    "RecordList",
    "Redacted",
    "with_checked",
    "without_aliases",
]
