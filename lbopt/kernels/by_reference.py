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
from functools import partial
from typing import Any

import numba
from numba.core import cgutils, types
from numba.experimental import structref
from numba.experimental.jitclass.base import imp_dtor
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
    group._make = staticmethod(_maker(group, kind))
    return group


def _made(fields: tuple[str, ...], group: type[_GroupType]) -> Any:
    """Return what allocates a group of these fields in compiled code, and writes them.

    Arrays are written as pointers to their data alone: no counter is kept for them any more.
    """

    def made(*kinds: Any) -> tuple[Any, Any]:
        kind = group(list(zip(fields, kinds, strict=True)))
        return kind(*kinds), partial(_write, kind)

    written: dict[str, Any] = {"_made": made}
    arguments = ", ".join(fields)
    exec(compile(f"def make(_context, {arguments}):\n    return _made({arguments})", __file__, "exec"), written)
    return intrinsic(written["make"])


def _write(kind: Any, context: Any, builder: Any, signature: Any, values: Any) -> Any:
    layout = context.data_model_manager[kind.get_data_type()].get_value_type()
    size = context.get_constant(types.uintp, context.get_abi_sizeof(layout))
    counted = context.nrt.meminfo_alloc_dtor(builder, size, imp_dtor(context, builder.module, kind))
    place = builder.bitcast(context.nrt.meminfo_data(builder, counted), layout.as_pointer())
    holder = cgutils.create_struct_proxy(kind.get_data_type())(context, builder, ref=place)
    for (name, field), value in zip(kind.field_dict.items(), values, strict=True):
        if isinstance(field, types.Array):
            array = context.make_array(field)(context, builder, value=value)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            value = array._getvalue()
        else:
            context.nrt.incref(builder, field, value)
        setattr(holder, name, value)
    made = context.make_helper(builder, kind)
    made.meminfo = counted
    return made._getvalue()


#: A kernel that allocates a group. Its arguments are written one by one: Numba tells the type of each in much less
#: time than that of a tuple which holds other groups or records.
_MAKER = """
def make_{name}({fields}):
    return _made({fields})
"""


def _maker(group: Any, kind: type[_GroupType]) -> Any:
    """Return a kernel that allocates a group; kept on disk with the kernels of the file that declares the group."""
    written: dict[str, Any] = {"__name__": group.__module__, "_made": _made(group._fields, kind)}
    code = _MAKER.format(name=group.__name__, fields=", ".join(group._fields))
    exec(compile(code, __file__, "exec"), written)
    return kernel(written[f"make_{group.__name__}"])
