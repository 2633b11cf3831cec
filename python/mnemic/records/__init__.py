"""Forms of the public records: one line, plain types, a data frame, HTML, and tables of rich."""

from mnemic.records.base import Record
from mnemic.records.listing import Listing, RecordList

__all__ = ["Listing", "Record", "RecordList"]
