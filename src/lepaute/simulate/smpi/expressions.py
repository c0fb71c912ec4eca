"""The formulas of simblas' table of routines: arithmetic in Python's notation, checked, and written out as C++.

A formula knows numbers, names, + - * /, powers of a name, min and max, comparisons, `and`, `or`, `not`,
`a if condition else b`, and letters: `side == 'L'`, `jobz in 'AS'`. Every number is a double: the sizes of a call
multiply to more than an int holds.
"""

import ast
from collections.abc import Collection
from dataclasses import dataclass

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "&&",
    ast.Or: "||",
    ast.USub: "-",
    ast.Not: "!",
}
FUNCTIONS = ("min", "max")
HIGHEST_POWER = 4


@dataclass(frozen=True)
class Expression:
    """A checked formula: as it stands in the table, as C++, and the names that it needs."""

    text: str
    cpp: str
    names: frozenset[str]


def parse_expression(text: str, known: Collection[str]) -> Expression:
    """The formula `text`, which may use the names in `known`.

    Raises ValueError, with a text that says what is wrong, when it is not a formula or uses another name.
    """
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):  # ValueError: a null byte
        raise ValueError(f"{text.strip()!r} is not a formula") from None
    names: set[str] = set()
    cpp = _cpp(body, names)
    if unknown := sorted(names - set(known)):
        raise ValueError(f"{unknown[0]} in {text.strip()!r} is no argument of this routine and no `let`")
    return Expression(text.strip(), cpp, frozenset(names))


def _cpp(node: ast.expr, names: set[str]) -> str:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return repr(float(number))
        case ast.Constant(value=str() as letter) if len(letter) == 1 and letter.isalnum():
            return f"'{letter}'"
        case ast.Name(id=name):
            names.add(name)
            return name
        case ast.BinOp(left=ast.Name(id=name), op=ast.Pow(), right=ast.Constant(value=int() as power)) if (
            2 <= power <= HIGHEST_POWER
        ):
            names.add(name)
            return "(" + " * ".join([name] * power) + ")"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return f"({_cpp(left, names)} {OPERATORS[type(op)]} {_cpp(right, names)})"
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return f"({OPERATORS[type(op)]}{_cpp(operand, names)})"
        case ast.Call(func=ast.Name(id=function), args=args, keywords=[]) if function in FUNCTIONS and len(args) > 1:
            return f"std::{function}({{{', '.join(_cpp(arg, names) for arg in args)}}})"
        case _:
            return _choice(node, names)


def _choice(node: ast.expr, names: set[str]) -> str:
    match node:
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return f"({_cpp(test, names)} ? {_cpp(body, names)} : {_cpp(orelse, names)})"
        case ast.BoolOp(op=op, values=values):
            return "(" + f" {OPERATORS[type(op)]} ".join(_cpp(value, names) for value in values) + ")"
        case ast.Compare(
            left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[ast.Constant(value=str() as letters)]
        ) if letters.isalnum():
            tested = _cpp(left, names)
            among = " || ".join(f"{tested} == '{letter}'" for letter in letters)
            return f"({among})" if isinstance(op, ast.In) else f"(!({among}))"
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
            return f"({_cpp(left, names)} {OPERATORS[type(op)]} {_cpp(right, names)})"
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is nothing that a formula may contain")
