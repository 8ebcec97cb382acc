"""Small changes of a Python source, one at a time: the mutants of a module.

A mutant replaces the text of one expression or one statement; every other character of the file stays. Its identifier
is `file::function::operator#n`: the n-th place of that operator in that function, so that edits of other functions do
not rename it.

Left alone are messages (f-strings and other text), annotations, decorators, docstrings and imports.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change.

    Parameters
    ----------
    id
        Its identifier.
    line
        Where it begins.
    source
        The whole file, UTF-8.
    first, last
        The bytes of the file that are replaced.
    after
        What replaces them.
    """

    id: str
    line: int
    source: bytes
    first: int
    last: int
    after: str

    @property
    def text(self) -> str:
        """The whole file with the change."""
        return (self.source[: self.first] + self.after.encode() + self.source[self.last :]).decode()

    @property
    def before(self) -> str:
        """What is replaced."""
        return self.source[self.first : self.last].decode()

    @property
    def operator(self) -> str:
        """The kind of change."""
        return self.id.rsplit("::", 1)[1].split("#")[0]

    @property
    def change(self) -> str:
        """The change in one line, blanks joined."""
        return " ".join(f"{self.before} -> {self.after}".split())

    @property
    def hash(self) -> str:
        """SHA-256 of the changed file, 16 hex digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def mutants_of(file: str, text: str) -> list[Mutant]:
    """Return all mutants of a module in order of the text.

    Parameters
    ----------
    file
        Name of the file, the first part of each identifier.
    text
        Its source.
    """
    source = text.encode()
    starts = [0, *itertools.accumulate(len(line) for line in source.splitlines(keepends=True))]
    found: list[Mutant] = []
    count: Counter[str] = Counter()
    for function, operator, node, after in _places(ast.parse(text)):
        name = f"{file}::{function}::{operator}"
        count[name] += 1
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        found.append(Mutant(f"{name}#{count[name]}", node.lineno, source, first, last, after))
    return found


def _places(tree: ast.Module) -> Iterator[tuple[str, str, ast.expr | ast.stmt, str]]:
    """Yield function, operator, the node that is replaced, and the new text."""
    for function, body, scope in _functions(tree):
        bound: set[str] = set()
        for node in body:
            for operator, target, after in _of_statement(node, scope, bound):
                yield function, operator, target, after
            for expression in _expressions(node):
                for operator, after in _of_expression(expression):
                    yield function, operator, expression, after
            bound |= {name.id for name in _own_names(node) if isinstance(name.ctx, ast.Store)}


def _own_names(statement: ast.stmt) -> Iterator[ast.Name]:
    """Yield the names in a statement, those of the blocks within it left aside."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            yield node
        todo += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _functions(
    node: ast.AST, name: str = "<module>", scope: Function | None = None
) -> Iterator[tuple[str, list[ast.stmt], Function | None]]:
    """Yield each scope with its statements at any depth, in order of the text."""
    own: list[ast.stmt] = []
    inner: list[ast.stmt] = []
    todo = list(reversed(getattr(node, "body", [])))
    while todo:
        statement = todo.pop()
        if isinstance(statement, Function | ast.ClassDef):
            inner.append(statement)
        elif not _is_type_checking(statement):
            own.append(statement)
            blocks = [getattr(statement, part, []) for part in ("body", "orelse", "finalbody")]
            blocks[1:1] = [handler.body for handler in getattr(statement, "handlers", [])]
            blocks += [case.body for case in getattr(statement, "cases", [])]
            todo += [child for block in reversed(blocks) for child in reversed(block)]
    yield name, own, scope
    for child in inner:
        place = "" if name == "<module>" else f"{name}."
        yield from _functions(child, f"{place}{child.name}", child if isinstance(child, Function) else None)


def _is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _of_statement(
    node: ast.stmt, scope: Function | None, bound: set[str]
) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Yield changes of a whole statement: dropped, its condition negated, another value returned."""
    match node:
        case ast.Return(value=ast.expr() as value):
            yield "return", value, _other_value(value, scope)
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Break() | ast.Continue():
            yield "drop", node, "pass"
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield "drop", node, "pass"
        case ast.Assign(targets=[ast.Name(id=name)]) if name in bound and scope is not None:
            yield "drop", node, "pass"
        case ast.If(test=test) | ast.While(test=test):
            yield "negate", test, f"not ({ast.unparse(test)})"
    if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        other = ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)
        yield "arithmetic", node, ast.unparse(other)


def _other_value(value: ast.expr, scope: Function | None) -> str:
    """The text of another value than the one returned, of the type that the function declares where that is known."""
    text = ast.unparse(value)
    declared = ast.unparse(scope.returns) if scope is not None and scope.returns is not None else ""
    if text == "None":
        return "0"
    if declared == "bool":
        return f"not ({text})"
    if declared in ("int", "float"):
        return f"({text}) + 1"
    return "None"


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions of one statement itself, outermost first, in order of the text."""
    skipped = {"annotation", "returns", "decorator_list", "body", "orelse", "finalbody", "handlers", "cases"}
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal):
        return
    for field, value in ast.iter_fields(statement):
        if field not in skipped:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.expr):
                    yield from _within(child)
                elif isinstance(child, ast.withitem):
                    yield from _within(child.context_expr)


def _within(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.JoinedStr):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _within(child)
        elif isinstance(child, ast.comprehension):
            for part in (child.iter, *child.ifs):
                yield from _within(part)
        elif isinstance(child, ast.keyword):
            yield from _within(child.value)


def _of_expression(node: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield operator and new text of each change of one expression, parts of it left aside."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for k, op in enumerate(ops):
                others = [*ops[:k], _COMPARISONS[type(op)](), *ops[k + 1 :]]
                yield "compare", f"({ast.unparse(ast.Compare(left, others, comparators))})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC and not _is_text(left, right):
            yield "arithmetic", f"({ast.unparse(ast.BinOp(left, _ARITHMETIC[type(op)](), right))})"
        case ast.BoolOp(op=op, values=values):
            yield "boolean", f"({ast.unparse(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "boolean", f"({ast.unparse(operand)})"
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield "arithmetic", f"({ast.unparse(operand)})"
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "negate", f"({ast.unparse(ast.IfExp(test, orelse, body))})"
        case ast.Constant(value=bool() as value):
            yield "constant", str(not value)
        case ast.Constant(value=int() as value):
            yield "constant", str(value + 1)
        case ast.Constant(value=float() as value):
            yield "constant", repr(2.0 * value if value else 1.0)
        case ast.Call(func=func, args=args, keywords=keywords):
            if isinstance(func, ast.Name) and func.id == "range":
                k = min(len(args) - 1, 1)
                nearer = [*args[:k], ast.BinOp(args[k], ast.Sub(), ast.Constant(1)), *args[k + 1 :]]
                yield "boundary", ast.unparse(ast.Call(func, nearer, keywords))
            k = next((k for k in range(len(args) - 1) if _can_swap(func, *args[k : k + 2])), None)
            if k is not None:
                swapped = [*args[:k], args[k + 1], args[k], *args[k + 2 :]]
                yield "swap", ast.unparse(ast.Call(func, swapped, keywords))
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=step)):
            if lower is not None:
                moved = ast.Slice(ast.BinOp(lower, ast.Add(), ast.Constant(1)), upper, step)
                yield "boundary", ast.unparse(ast.Subscript(value, moved, ast.Load()))
            if upper is not None:
                moved = ast.Slice(lower, ast.BinOp(upper, ast.Sub(), ast.Constant(1)), step)
                yield "boundary", ast.unparse(ast.Subscript(value, moved, ast.Load()))


def _can_swap(function: ast.expr, first: ast.expr, second: ast.expr) -> bool:
    """Whether two arguments differ and their order can matter; a dtype in place of a shape fails in any test."""
    texts = [ast.unparse(node) for node in (first, second)]
    if _is_text(first) and _is_text(second):
        return False  # words for people
    symmetric = ast.unparse(function).split(".")[-1] in ("max", "min", "maximum", "minimum", "gcd")
    plain = not any(isinstance(node, ast.Starred) for node in (first, second))
    return plain and not symmetric and texts[0] != texts[1] and not any(text.startswith("np.") for text in texts)


def _is_text(*nodes: ast.expr) -> bool:
    return any(
        isinstance(n, ast.JoinedStr) or (isinstance(n, ast.Constant) and isinstance(n.value, str)) for n in nodes
    )
