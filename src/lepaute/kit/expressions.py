"""Expressions of study files and applications, such as p*q == 256 or n**3: arithmetic on names, and nothing else.

They are parsed by Python's own parser and evaluated by walking the tree: no name but those given is reachable.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from math import isfinite, sqrt
from typing import Any

from lepaute.errors import InputError, LepauteError

Number = int | float | bool | str | None

_LONGEST = 500
_MAX_NODES = 200
_LARGEST = 1e300
_LARGEST_EXPONENT = 64

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs, "sqrt": sqrt}


class Expression:
    """An expression, checked when it is made.

    names : that it uses
    Raises InputError for what is no expression of this kind.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        if len(self.text) > _LONGEST:
            raise InputError(f"has {len(self.text)} characters; an expression has at most {_LONGEST}")
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise InputError(f"is {self.text[:80]!r}, which is no expression; write one such as p*q == 256") from None
        nodes = list(ast.walk(self._tree))
        if len(nodes) > _MAX_NODES:
            raise InputError(f"has more than {_MAX_NODES} parts; write several expressions")
        functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        self.names = frozenset(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in functions)
        if rule := next(filter(None, map(_broken_rule, nodes)), None):
            raise InputError(f"is {self.text!r}; {rule}")

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def value(self, names: Mapping[str, Any]) -> Any:
        """The value, for these values of the names; raises InputError if it has none, such as 1/0."""
        try:
            value = self._value(self._tree, names)
        except KeyError as missing:
            raise InputError(
                f"{self.text!r}: there is no {missing.args[0]}; known are {', '.join(sorted(names))}"
            ) from None
        except LepauteError:
            raise
        except (ArithmeticError, TypeError, ValueError) as error:
            raise InputError(f"{self.text!r}: has no value ({error})") from None
        return value

    def number(self, names: Mapping[str, Any]) -> float:
        """The value as a number; raises InputError if it is none."""
        value = self.value(names)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise InputError(f"{self.text!r}: is {value!r:.40}, which is no finite number")
        return float(value)

    def holds(self, names: Mapping[str, Any]) -> bool:
        """Whether it is true; raises InputError if it is not about truth."""
        value = self.value(names)
        if not isinstance(value, bool):
            raise InputError(f"{self.text!r}: is {value!r:.40}, not true or false; compare it with something")
        return value

    def _value(self, node: ast.AST, names: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return names[node.id]
        if isinstance(node, ast.BoolOp):
            stop = isinstance(node.op, ast.Or)
            return next((stop for each in node.values if bool(self._value(each, names)) is stop), not stop)
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, names)
            if isinstance(node.op, ast.Not):
                return not value
            return -value if isinstance(node.op, ast.USub) else +value
        if isinstance(node, ast.Compare):
            values = [self._value(each, names) for each in (node.left, *node.comparators)]
            return all(_COMPARED[type(op)](a, b) for op, a, b in zip(node.ops, values[:-1], values[1:], strict=True))
        if isinstance(node, ast.BinOp):
            return self._binary(node, names)
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        return _FUNCTIONS[node.func.id](*(self._value(arg, names) for arg in node.args))

    def _binary(self, node: ast.BinOp, names: Mapping[str, Any]) -> Any:
        left, right = self._value(node.left, names), self._value(node.right, names)
        if not all(isinstance(each, int | float) for each in (left, right)):
            raise TypeError("numbers are added and multiplied, texts are compared only")
        if isinstance(node.op, ast.Pow) and abs(right) > _LARGEST_EXPONENT:
            raise ValueError(f"the exponent is {right:g}; at most {_LARGEST_EXPONENT} is allowed")
        value = _BINARY[type(node.op)](left, right)
        if isinstance(value, complex) or abs(value) > _LARGEST:
            raise ValueError("it is no real number that is finite")
        return value


def _broken_rule(node: ast.AST) -> str | None:
    """What a part of an expression violates; None: nothing."""
    if isinstance(node, ast.Call):
        named = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        plain = named and not node.keywords and not any(isinstance(arg, ast.Starred) for arg in node.args)
        return None if plain else f"the functions are {', '.join(_FUNCTIONS)}"
    if isinstance(node, ast.Constant):
        plain = isinstance(node.value, bool | int | float | str)
        return None if plain else "constants are numbers, texts, True and False"
    if isinstance(node, ast.BinOp):
        return None if type(node.op) in _BINARY else "operators are + - * / // % ** and comparisons"
    if isinstance(node, ast.Compare):
        return None if all(type(each) in _COMPARED for each in node.ops) else "comparisons are == != < <= > >="
    if isinstance(node, ast.UnaryOp):
        return "write not instead of ~" if isinstance(node.op, ast.Invert) else None
    parts = ast.BoolOp | ast.Name | ast.operator | ast.cmpop | ast.unaryop | ast.boolop | ast.expr_context
    return None if isinstance(node, parts) else "an expression has numbers, names, operators and comparisons only"
