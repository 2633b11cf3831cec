"""Everything that an answer holds, as text: reprs are one line and show a part of it."""

import msgspec


def whole(value):
    """Return an answer with every field of its records, at any depth."""
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        fields = ", ".join(f"{name}={whole(getattr(value, name))}" for name in names)
        return f"{type(value).__name__}({fields})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {whole(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{', '.join(map(whole, value))}]"
    return repr(value)
