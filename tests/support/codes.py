"""The errors of codes that stand for families of codes."""

from mnemic import errors


def expected(code, table):
    """Return the longest of the table's codes that this one begins with, and its error."""
    families = [family for family in table if code == family or code.startswith(family)]
    return table[max(families, key=len)] if families else errors.StoreError
