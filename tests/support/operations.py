"""Stands in the way of what a store is asked for."""

from mnemic.store.operations import Read


def replace_operation(patch, store, kind, function):
    """Have a function of the test's carry out one kind of operation, or call a method.

    Args:
        patch: A monkeypatch.
        store: The store.
        kind: The kind of operation, several, or the name of a method.
        function: Takes what would have been called, and what with.
    """
    if isinstance(kind, str):
        own = getattr(store, kind)
        patch.setattr(store, kind, lambda *given, **named: function(own, *given, **named))
        return
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for verb in {"read" if issubclass(each, Read) else "write" for each in kinds}:
        patch.setattr(store, verb, _instead(getattr(store, verb), kinds, function))


def _instead(own, kinds, function):
    def call(wanted, **options):
        if isinstance(wanted, kinds):
            return function(own, wanted, **options)
        return own(wanted, **options)

    return call
