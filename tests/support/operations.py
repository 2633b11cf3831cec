"""Stands in the way of operations of a store."""

from mnemic.store.operations import Read


def replace_operation(patch, store, kind, carry_out):
    """Have a store carry out one kind of operation by a function of the test's.

    Args:
        patch: A monkeypatch.
        store: The store.
        kind: The kind of operation, or several.
        carry_out: Takes the operation, and what else it was called with.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for verb in {"read" if issubclass(each, Read) else "write" for each in kinds}:
        patch.setattr(store, verb, _instead(getattr(store, verb), kinds, carry_out))


def _instead(own, kinds, carry_out):
    def call(wanted, **options):
        return (carry_out if isinstance(wanted, kinds) else own)(wanted, **options)

    return call
