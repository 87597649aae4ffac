"""The public headers for ctypes: every struct, enum, constant and function, parsed from the
headers themselves, so that nothing here can differ from them.

    api = load(prefix_of_an_installation)
    api.create_options(ndim=1)          a zeroed struct, its struct_size set
    api.open(path, None, pointer, err)  the function, as ctypes calls it
    api.EBUSY                           a constant"""

import ctypes as c
import re
import subprocess
from pathlib import Path

from pycparser import c_ast, c_parser

PREFIX = "caterva_"
PLAIN = {"int": c.c_int, "char": c.c_char, "double": c.c_double, "int64_t": c.c_int64,
         "int32_t": c.c_int32, "uint8_t": c.c_uint8, "uint32_t": c.c_uint32,
         "uint64_t": c.c_uint64, "size_t": c.c_size_t, "float": c.c_float,
         "unsigned": c.c_uint, "long long": c.c_longlong}
SYSTEM = "".join(f"typedef int {name};\n" for name in PLAIN if name.endswith("_t"))


def text_of(header):
    """caterva.h and the headers beside it, as one text. caterva_upkeep.h comes before the
    headers that include it."""
    topics = sorted(header.parent.glob("caterva_*.h"), key=lambda path: path.stem != "caterva_upkeep")
    return "\n".join(path.read_text() for path in [header, *topics])


def preprocessed(text, compiler):
    """The headers without comments, macros and what they include."""
    text = re.sub(r"^#include.*$", "", text, flags=re.MULTILINE)
    command = [compiler, "-E", "-P", "-x", "c", "-D__attribute__(x)=", "-DNULL=0",
               "-DSIZE_MAX=0", "-DINT64_MIN=(-9223372036854775807LL-1)", "-"]
    return SYSTEM + subprocess.run(command, input=text, check=True, capture_output=True,
                                   text=True).stdout


class Header:
    """Converts declarations to ctypes, in their order."""

    def __init__(self, text):
        self.types, self.structs, self.constants, self.functions = dict(PLAIN), {}, {}, {}
        for node in c_parser.CParser().parse(text).ext:
            if isinstance(node, c_ast.Typedef):
                if node.name not in PLAIN:
                    self.types[node.name] = self.type_of(node.type)
            elif isinstance(node.type, c_ast.FuncDecl):
                self.functions[node.name] = self.signature(node.type)
            else:
                self.type_of(node.type) # struct caterva_x { ... };

    def number(self, node):
        if isinstance(node, c_ast.Constant):
            return int(node.value.rstrip("uUlL"), 0)
        if isinstance(node, c_ast.UnaryOp) and node.op == "-":
            return -self.number(node.expr)
        if isinstance(node, c_ast.ID):
            return self.constants[node.name]
        if isinstance(node, c_ast.BinaryOp):
            left, right = self.number(node.left), self.number(node.right)
            return {"<<": left << right, "|": left | right, "+": left + right,
                    "-": left - right, "*": left * right}[node.op]
        raise ValueError(f"a constant of kind {type(node).__name__}")

    def enum(self, node):
        value = -1
        for item in node.values.enumerators if node.values else []:
            value = self.number(item.value) if item.value else value + 1
            self.constants[item.name] = value
        return c.c_int

    def struct(self, node):
        made = self.structs.get(node.name)
        if made is None:
            made = self.structs[node.name] = type(node.name, (c.Structure,), {})
        if node.decls:
            made._fields_ = [(d.name, self.type_of(d.type)) for d in node.decls]
        return made

    def signature(self, node):
        arguments = [a.type for a in (node.args.params if node.args else [])]
        types = [self.type_of(a) for a in arguments]
        return self.type_of(node.type), [] if types == [None] else types

    def pointer(self, node):
        if isinstance(node, c_ast.FuncDecl):
            result, arguments = self.signature(node)
            return c.CFUNCTYPE(result, *arguments)
        inner = self.type_of(node)
        if inner is None:
            return c.c_void_p
        if inner is c.c_char and "const" in getattr(node, "quals", []):
            return c.c_char_p
        return c.POINTER(inner)

    def type_of(self, node):
        if isinstance(node, c_ast.PtrDecl):
            return self.pointer(node.type)
        if isinstance(node, c_ast.ArrayDecl):
            if node.dim is None:
                return c.POINTER(self.type_of(node.type))
            return self.type_of(node.type) * self.number(node.dim)
        if isinstance(node, c_ast.TypeDecl):
            return self.type_of(node.type)
        if isinstance(node, c_ast.Struct):
            return self.struct(node)
        if isinstance(node, c_ast.Enum):
            return self.enum(node)
        name = " ".join(node.names)
        return None if name == "void" else self.types[name]


def argument(kind):
    """An array among the parameters is a pointer."""
    return c.POINTER(kind._type_) if isinstance(kind, type(c.Array)) else kind


class Api:
    """The library with its headers; `header` is the path of caterva.h."""

    def __init__(self, header, library, compiler="cc"):
        text = text_of(header)
        parsed = Header(preprocessed(text, compiler))
        handle = c.CDLL(str(library))
        self.functions = sorted(parsed.functions)
        for name, (result, arguments) in parsed.functions.items():
            function = getattr(handle, name)
            function.restype = result
            function.argtypes = [argument(a) for a in arguments]
            setattr(self, name.removeprefix(PREFIX), function)
        macros = re.findall(r"^#define CATERVA_(\w+) \(?(-?\d+)\)?\s*$", text, re.MULTILINE)
        for name, value in macros:
            setattr(self, name, int(value))
        for name, value in parsed.constants.items():
            setattr(self, name.removeprefix("CATERVA_"), value)
        self.AXIS_OMIT = -2**63
        self.structs = parsed.structs

    def new(self, name, /, **values):
        """A zeroed struct caterva_<name>; struct_size is set if it has one."""
        made = self.structs[PREFIX + name]()
        if any(field == "struct_size" for field, _ in made._fields_):
            made.struct_size = c.sizeof(made)
        for field, value in values.items():
            if not hasattr(made, field):
                raise AttributeError(f"{PREFIX}{name} has no {field}")
            setattr(made, field, value)
        return made


def load(prefix, libdir="lib"):
    library = next(p for name in ("libcaterva.so", "libcaterva.dylib")
                   for p in [Path(prefix, libdir, name)] if p.exists())
    return Api(Path(prefix, "include", "caterva.h"), library)
