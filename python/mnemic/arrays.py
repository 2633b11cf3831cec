"""numpy, imported when an array is first made or given, and the types of arrays.

Importing numpy takes longer than importing all of mnemic, and a memory without vectors needs none
of it. Modules that every memory loads take `np` and the types from here. Type checkers read the
types of numpy; at run time they are classes of these names, as which `help` shows them.
"""

from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, SupportsFloat, TypeAlias

__all__ = ["Array", "ArrayLike", "BoolArray", "Float32Array", "Int64Array", "UInt8Array", "np"]

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    class _HasArray(Protocol):
        """An array, also of another library."""

        def __array__(self) -> NDArray[Any]: ...

    # Not numpy's own: it has texts in it, and mypy takes [[1, 0], [0.5, 1]] for none.
    _Vector: TypeAlias = _HasArray | Sequence[SupportsFloat]
    ArrayLike: TypeAlias = _HasArray | Sequence[SupportsFloat | _Vector]
    Array: TypeAlias = NDArray[Any]
    BoolArray: TypeAlias = NDArray[np.bool_]
    Float32Array: TypeAlias = NDArray[np.float32]
    Int64Array: TypeAlias = NDArray[np.int64]
    UInt8Array: TypeAlias = NDArray[np.uint8]
else:

    def _attribute(name: str) -> Any:
        """Return a name of numpy; the module keeps it, and is not asked again."""
        import numpy  # noqa: ICN001, PLC0415 - what this module is for

        value = getattr(numpy, name)
        setattr(np, name, value)
        return value

    np = ModuleType("numpy")
    np.__getattr__ = _attribute

    class _OfNumpy(type):
        """Class of the classes whose instances are arrays of numpy."""

        def __instancecheck__(cls, given: object) -> bool:
            return isinstance(given, np.ndarray) and cls.dtype in (None, given.dtype)

    class ArrayLike:
        """An array, or what `numpy.asarray` takes in its place, such as a list of numbers."""

    class Array(metaclass=_OfNumpy):
        """An array of numpy."""

        dtype: ClassVar[str | None] = None

    class BoolArray(Array):
        """An array of numpy, of bools."""

        dtype = "bool"

    class Float32Array(Array):
        """An array of numpy, of float32."""

        dtype = "float32"

    class Int64Array(Array):
        """An array of numpy, of int64."""

        dtype = "int64"

    class UInt8Array(Array):
        """An array of numpy, of uint8."""

        dtype = "uint8"
