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


def replace_operation_of_all(patch, kind_of_store, kind, function):
    """Have a function of the test's carry out one kind of read in all stores of a class.

    Args:
        patch: A monkeypatch.
        kind_of_store: The class.
        kind: The kind of read.
        function: Takes the method, and what it would have been called with.
    """
    read = kind_of_store.read

    def call(store, wanted, **options):
        if isinstance(wanted, kind):
            return function(read, store, wanted, **options)
        return read(store, wanted, **options)

    patch.setattr(kind_of_store, "read", call)


def _instead(own, kinds, function):
    def call(wanted, **options):
        if isinstance(wanted, kinds):
            return function(own, wanted, **options)
        return own(wanted, **options)

    return call
