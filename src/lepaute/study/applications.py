"""Applications of the plain values of a study file: the fields, as the command line of `lepaute predict` has them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.kit.options import option_of, word_of
from lepaute.kit.quantities import product_of, whole_of

if TYPE_CHECKING:
    from lepaute.simulate.application import Application


def application_of(values: Mapping[str, Any]) -> "Application":
    """The application of `values`: its name, and its fields; a grid is one value, such as 8x4.

    Raises InputError for a field that it does not have, and for a value that cannot be.
    """
    from lepaute.simulate.apps import application_class

    described = application_class(str(values["name"]))
    given: dict[str, Any] = {}
    names = fields_of(described)
    for name, value in values.items():
        if name == "name":
            continue
        if name not in names:
            from lepaute.kit.documents import guess

            raise InputError(
                f"application.{name[:60]} is no field of {values['name']}{guess(name, list(names))}; "
                f"it has {', '.join(names)}"
            )
        given |= _values(name, names[name], value, described)
    try:
        return described(**given)
    except TypeError:
        missing = [name for name, members in names.items() if _is_needed(described, members, given)]
        raise InputError(f"application.{missing[0] if missing else 'name'} is missing; give it") from None


def fields_of(described: type) -> dict[str, tuple[str, ...]]:
    """The name of each field in a study file -> the fields of the class; p and q of HPL are `grid`."""
    together: dict[str, tuple[str, ...]] = {}
    for field in fields(described):
        option = option_of(field)
        shared = option is not None and option.name and _shares(described, option.name)
        name = option.name if shared and option is not None else field.name
        together[name] = (*together.get(name, ()), field.name)
    return together


def _shares(described: type, name: str) -> bool:
    return sum((option := option_of(field)) is not None and option.name == name for field in fields(described)) > 1


def _values(name: str, members: tuple[str, ...], value: Any, described: type) -> dict[str, Any]:
    if len(members) > 1:
        form = f"{' x '.join(member.upper() for member in members)} such as {'x'.join('8' for _ in members)}"
        return dict(zip(members, product_of(str(value), f"application.{name}", form), strict=True))
    field = next(each for each in fields(described) if each.name == members[0])
    option = option_of(field)
    if isinstance(value, str) and option is not None:
        if option.choices:
            return {members[0]: word_of(value, option.choices, name, option.aliases)}
        if option.parse is not None:
            return {members[0]: option.parse(value)}
    if isinstance(value, str) and field.type in (int, int | None):
        return {members[0]: whole_of(value, f"application.{name}")}
    if isinstance(value, int) and not isinstance(value, bool) and field.type in (float, float | None):
        return {members[0]: float(value)}
    return {members[0]: value}


def _is_needed(described: type, members: tuple[str, ...], given: Mapping[str, Any]) -> bool:
    from dataclasses import MISSING

    needed = [each for each in fields(described) if each.default is MISSING and each.default_factory is MISSING]
    return any(each.name in members and each.name not in given for each in needed)
