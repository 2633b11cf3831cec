"""numpy, imported when an array is first made or given, and the types of arrays.

Importing numpy takes longer than importing all of mnemic, and a memory without vectors needs none
of it. Modules that every memory loads take `np` and the types from here.
"""

from types import ModuleType
from typing import TYPE_CHECKING, Any, ForwardRef, TypeAlias

__all__ = ["Array", "ArrayLike", "BoolArray", "Float32Array", "Int64Array", "UInt8Array", "np"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array: TypeAlias = NDArray[Any]
    BoolArray: TypeAlias = NDArray[np.bool_]
    Float32Array: TypeAlias = NDArray[np.float32]
    Int64Array: TypeAlias = NDArray[np.int64]
    UInt8Array: TypeAlias = NDArray[np.uint8]
else:

    def _attribute(name: str) -> Any:
        """Return a name of numpy; the module keeps it, and is not asked again."""
        import numpy.typing  # noqa: ICN001, PLC0415 - what this module is for

        value = getattr(numpy, name)
        setattr(np, name, value)
        return value

    np = ModuleType("numpy")
    np.__getattr__ = _attribute

    def _type(source: str) -> ForwardRef:
        """Return a type that `typing.get_type_hints` reads, and msgspec where it converts."""
        return ForwardRef(source, module=__name__)

    ArrayLike = _type("np.typing.ArrayLike")
    Array = _type("np.typing.NDArray[Any]")
    BoolArray = _type("np.typing.NDArray[np.bool_]")
    Float32Array = _type("np.typing.NDArray[np.float32]")
    Int64Array = _type("np.typing.NDArray[np.int64]")
    UInt8Array = _type("np.typing.NDArray[np.uint8]")
