"""Groups of arrays that kernels pass on as one pointer.

A named tuple is passed between compiled functions array by array, field by field: 30 arrays are 200 machine words a
call, half a microsecond, and a third of the time of compiling. As a reference to a struct (Numba's `structref`) they
are one word. In Python such a group is made and read like the named tuple that it was declared as; its fields cannot be
set. Under NUMBA_DISABLE_JIT it is the named tuple.

The struct of a group that Python made counts no references to its arrays, since the group holds them anyway: counting
is atomic, and took a fifth of a search.
"""

from __future__ import annotations

import sys
import zlib
from typing import Any

import numba
from numba.core import cgutils, types
from numba.experimental import structref
from numba.extending import intrinsic

from lbopt.kernels.compile import kernel


class _GroupType(types.StructRef):
    """Type of a group in compiled code; its name would be pages long if it listed the fields."""

    def __init__(self, fields: Any) -> None:
        super().__init__(fields)
        self.name = f"{self.__class__.__qualname__}_{zlib.crc32(self.name.encode()):08x}"


class _Group(structref.StructRefProxy):
    """A group in Python: holds its arrays beside the struct that kernels are given."""

    __slots__ = ("_held",)
    _fields: tuple[str, ...]
    _make: Any  # the kernel that allocates such a struct

    def __new__(cls, *values: Any, **named: Any) -> Any:
        rest = cls._fields[len(values) :]
        if named.keys() != set(rest):
            raise TypeError(f"{cls.__name__} needs {', '.join(rest)} by name; it was given {', '.join(named)}")
        values += tuple(named[name] for name in rest)
        made = cls._make(*values)
        made._held = dict(zip(cls._fields, values, strict=True))
        return made

    def __getattr__(self, name: str) -> Any:
        if name not in self._fields:
            raise AttributeError(f"{type(self).__name__} has no field {name}")
        return self._held[name]


def by_reference(declared: Any) -> Any:
    """Return a class like this NamedTuple, whose objects compiled functions pass on by reference."""
    settings: Any = numba.config
    if settings.DISABLE_JIT:
        return declared
    name, home = declared.__name__, sys.modules[declared.__module__]
    place = {"__module__": declared.__module__, "__doc__": declared.__doc__}
    kind = type(f"{name}Type", (_GroupType,), place)
    group: Any = type(name, (_Group,), {**place, "__slots__": (), "_fields": declared._fields})
    setattr(home, kind.__name__, kind)  # the cache of kernels looks types up by name
    structref.register(kind)
    structref.define_proxy(group, kind, declared._fields)
    group._make = staticmethod(_maker(group))
    return group


def _forgetting(context: Any, group: Any) -> Any:
    """Let the arrays of a group point to their data alone: no counter is kept for them any more."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        pointer = structref._Utils(context, builder, kind).get_data_pointer(arguments[0])
        fields = cgutils.create_struct_proxy(kind.get_data_type())(context, builder, ref=pointer)
        for name, field in kind.field_dict.items():
            if not isinstance(field, types.Array):
                continue
            array = context.make_array(field)(context, builder, value=getattr(fields, name))
            context.nrt.decref(builder, field, array._getvalue())
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            setattr(fields, name, array._getvalue())
        return context.get_dummy_value()

    return types.void(group), code


_forget_owners: Any = intrinsic(_forgetting)


#: A kernel that allocates a group. Its arguments are written one by one: Numba tells the type of each in much less
#: time than that of a tuple which holds other groups or records.
_MAKER = """
def maker(group):
    def make_{name}({fields}):
        made = group({fields})
        _forget_owners(made)
        return made
    return make_{name}
"""


def _maker(group: Any) -> Any:
    """Return a kernel that allocates a group; kept on disk with the kernels of the file that declares the group."""
    written: dict[str, Any] = {"__name__": group.__module__, "_forget_owners": _forget_owners}
    code = _MAKER.format(name=group.__name__, fields=", ".join(group._fields))
    exec(compile(code, __file__, "exec"), written)
    return kernel(written["maker"](group))
