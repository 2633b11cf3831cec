"""Chroma's folder, as it wrote it."""

from mnemic.importers.cleaning import NO_TEXT
from mnemic.importers.record import VECTORS


def test_chroma_keeps_documents_metadata_and_collections(bring, fixtures):
    report, stored = bring("chroma", fixtures / "chroma")
    assert set(stored) == {"Ana moved to Oslo in May", "Prefers green tea", "A cabin by the fjord"}
    assert report.lost == {VECTORS: 4, NO_TEXT: 1}
    oslo = stored["Ana moved to Oslo in May"]
    assert (oslo.user_id, f"{oslo.created_at:%F}") == ("ana", "2026-05-03")
    assert oslo.metadata == {"collection": "notes", "id": "n1", "sure": 0.5}
    tea = stored["Prefers green tea"].metadata
    assert (tea["cups"], tea["is_hot"]) == (3, True)
