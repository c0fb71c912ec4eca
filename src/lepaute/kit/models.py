"""The bases of documents that Pydantic checks: models of it, and records, whose values are plain.

A class of records is written as a model of Pydantic is. What it is written with here only stands for what Pydantic
has; the model is made when a value is checked, or something is asked that only the model knows. What has been checked
before, such as a platform kept in the cache, is made without it: loading Pydantic and making the models of a platform
take longer than a small prediction.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from threading import RLock
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self, Union, get_args, get_origin

from lepaute.kit.notebook import Listed, Public

__all__ = [
    "AfterValidator",
    "BeforeValidator",
    "ConfigDict",
    "Field",
    "PublicModel",
    "Record",
    "model_validator",
    "packed",
    "unpacked",
]

if TYPE_CHECKING:
    from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

    class PublicModel(BaseModel):
        """What type checkers see: they know the metaclass of Pydantic, and no other."""

    Record = PublicModel

    def packed(value: Any) -> Any: ...

    def unpacked(value: Any, records: Mapping[str, type]) -> Any: ...
else:

    def __getattr__(name: str) -> Any:
        """PublicModel: a document whose dir() shows its fields and own methods, and none of Pydantic's."""
        if name != "PublicModel":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from pydantic import BaseModel

        both = type("_ListedModel", (Listed, type(BaseModel)), {})
        inside = {
            "__module__": __name__,
            "_unlisted": frozenset(name for name in dir(BaseModel) if not name.startswith("_")),
            "__annotations__": {"_unlisted": ClassVar[frozenset[str]]},
        }
        globals()[name] = both(name, (Public, BaseModel), inside)
        return globals()[name]

    class _Part:
        """What a function of Pydantic will be called with."""

        def __init__(self, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            self.name, self.given, self.named = name, given, named

        def made(self) -> Any:
            return getattr(import_module("pydantic"), self.name)(*self.given, **self.named)

    def _stands_for(name: str) -> Any:
        return lambda *given, **named: _Part(name, given, named)

    def model_validator(*, mode: str) -> Any:
        """As Pydantic's."""
        return lambda function: _Validator(mode, function)

    AfterValidator, BeforeValidator, Field = map(_stands_for, ("AfterValidator", "BeforeValidator", "Field"))
    ConfigDict = dict

    class _Validator:
        """A function that will be a validator of the model."""

        def __init__(self, mode: str, function: Any) -> None:
            self.mode, self.function = mode, function

    class _Described(Listed):
        """Metaclass of records: keeps what their classes were written with, for the models."""

        def __new__(mcs, name: str, bases: tuple[type, ...], inside: dict[str, Any]) -> Any:
            validators = {key: inside.pop(key) for key, value in [*inside.items()] if isinstance(value, _Validator)}
            made = super().__new__(mcs, name, bases, inside)
            # Of the class, not of its body: from Python 3.14 on that has only a function that makes them.
            own = made.__annotations__.items()
            annotations = {field: annotation for field, annotation in own if get_origin(annotation) is not ClassVar}
            defaults = {field: inside[field] for field in annotations if field in inside}
            for field in defaults:
                delattr(made, field)
            _WRITTEN[made] = _Written(annotations, defaults, validators)
            _FIELDS[made] = tuple(dict.fromkeys(field for base in _above(made) for field in _WRITTEN[base].annotations))
            return made

        def __call__(self, /, **values: Any) -> Any:
            return _plain(_model_of(self)(**values))

        @property
        def model_fields(self) -> Any:
            return _model_of(self).model_fields

        @property
        def __pydantic_fields__(self) -> dict[str, None]:
            return dict.fromkeys(_FIELDS[self])

    class _Written(NamedTuple):
        """What a class has of its own: fields with their annotations, defaults of some, and validators."""

        annotations: dict[str, Any]
        defaults: dict[str, Any]
        validators: dict[str, _Validator]

    _WRITTEN: dict[type, _Written] = {}
    #: The fields of a class, those of the classes above it first.
    _FIELDS: dict[type, tuple[str, ...]] = {}

    def _above(record: type) -> list[type]:
        """The class and the records that it derives from, the most general one first."""
        return [base for base in reversed(record.__mro__) if isinstance(base, _Described)]

    class Record(Public, metaclass=_Described):
        """A value that does not change. Its methods are those of a model of Pydantic; making one checks it."""

        model_config: ClassVar[dict[str, Any]] = {}
        _unlisted: ClassVar[frozenset[str]] = frozenset(
            f"model_{name}" for name in ("config", "construct", "copy", "dump", "dump_json", "json_schema", "validate")
        )

        def __setattr__(self, name: str, _value: object) -> None:
            raise ValueError(f"a {type(self).__name__} is frozen; model_copy(update=...) makes another one")

        def __delattr__(self, name: str) -> None:
            self.__setattr__(name, None)

        def __eq__(self, other: object) -> bool:
            if type(other) is not type(self):
                return NotImplemented
            return all(getattr(self, field) == getattr(other, field) for field in _FIELDS[type(self)])

        def __hash__(self) -> int:
            return hash((type(self), *(getattr(self, field) for field in _FIELDS[type(self)])))

        def __iter__(self) -> Iterator[tuple[str, Any]]:
            return ((field, getattr(self, field)) for field in _FIELDS[type(self)])

        def __repr__(self) -> str:
            shown = ", ".join(f"{field}={getattr(self, field)!r}" for field in _FIELDS[type(self)])
            return f"{type(self).__name__}({shown})"

        @classmethod
        def model_validate(cls, content: Any) -> Self:
            return _plain(_model_of(cls).model_validate(content))

        @classmethod
        def model_json_schema(cls) -> dict[str, Any]:
            made = _model_of(cls)
            for model in [*_MODELS.values()]:  # Pydantic before 2.13 writes no default whose model was deferred
                model.model_rebuild()
            return made.model_json_schema()

        @classmethod
        def model_construct(cls, **values: Any) -> Self:
            """Without a check; what is left out has its default."""
            made = object.__new__(cls)
            for base in _above(cls):
                for field in _WRITTEN[base].annotations:
                    default = _WRITTEN[base].defaults.get(field)
                    default = default.named["default_factory"]() if isinstance(default, _Part) else default
                    made.__dict__[field] = values.get(field, default)
            return made

        def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
            """With other values of some fields, which are not checked."""
            made = object.__new__(type(self))
            made.__dict__.update({field: self.__dict__[field] for field in _FIELDS[type(self)]}, **(update or {}))
            return made

        def model_dump(self, **how: Any) -> dict[str, Any]:
            return _modelled(self).model_dump(**how)

        def model_dump_json(self, **how: Any) -> str:
            return _modelled(self).model_dump_json(**how)

        @classmethod
        def __get_pydantic_core_schema__(cls, _source: Any, handler: Any) -> Any:
            from pydantic_core import core_schema

            return core_schema.no_info_after_validator_function(_plain, handler(_model_of(cls)))

    #: The models that have been made, and the records that they are of.
    _MODELS: dict[type, Any] = {}
    _RECORD_OF: dict[type, type] = {}
    _making = RLock()

    def _model_of(record: Any) -> Any:
        """The model of Pydantic, made at the first call."""
        if record not in _MODELS:
            with _making:
                if record not in _MODELS:
                    _MODELS[record] = _made_model(record)
                    _RECORD_OF[_MODELS[record]] = record
        return _MODELS[record]

    def _made_model(record: Any) -> Any:
        from pydantic import BaseModel
        from pydantic import model_validator as validator

        def of_record(_cls: type, content: Any, check: Any) -> Any:
            return check(_modelled(content) if isinstance(content, record) else content)

        inside: dict[str, Any] = {"taken_from_record": validator(mode="wrap")(classmethod(of_record))}
        annotations: dict[str, Any] = {}
        for base in _above(record)[1:]:
            annotated, defaults, validators = _WRITTEN[base]
            inside |= {key: value for key, value in vars(base).items() if not key.startswith(("__", "model_"))}
            inside |= {field: _modelled(default) for field, default in defaults.items()}
            inside |= {key: validator(mode=each.mode)(each.function) for key, each in validators.items()}
            annotations |= {field: _with_models(annotation) for field, annotation in annotated.items()}
        written = {"__module__": record.__module__, "__qualname__": record.__qualname__, "__doc__": record.__doc__}
        inside |= {"model_config": record.model_config, "__annotations__": annotations, **written}
        return type(BaseModel)(record.__name__, (BaseModel,), inside)

    def _with_models(annotation: Any) -> Any:
        """An annotation that names models in the place of records."""
        if isinstance(annotation, _Described):
            return _model_of(annotation)
        origin, inner = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            kind, *parts = inner
            made = (part.made() if isinstance(part, _Part) else part for part in parts)
            return Annotated[(_with_models(kind), *made)]
        if origin in (tuple, list, dict):
            return origin[tuple(map(_with_models, inner))]
        if origin in (Union, UnionType):
            return Union[tuple(map(_with_models, inner))]  # noqa: UP007 - of parts that are not written here
        return annotation

    def _plain(value: Any) -> Any:
        """The record of a checked model, and those inside."""
        if (record := _RECORD_OF.get(type(value))) is not None:
            made = object.__new__(record)
            made.__dict__.update({field: _plain(value.__dict__[field]) for field in _FIELDS[record]})
            return made
        return tuple(map(_plain, value)) if type(value) is tuple else value

    def _modelled(value: Any) -> Any:
        """The model of a record, which has been checked, and of those inside."""
        if isinstance(value, Record):
            content = {field: _modelled(getattr(value, field)) for field in _FIELDS[type(value)]}
            return _model_of(type(value)).model_construct(**content)
        if isinstance(value, _Part):
            return value.made()
        return tuple(map(_modelled, value)) if type(value) is tuple else value

    def packed(value: Any) -> Any:
        """A record, and those inside, as what `marshal` writes: a list of the name of the class and of all values."""
        if isinstance(value, Record):
            record = type(value)
            return [record.__name__, *(packed(value.__dict__[field]) for field in _FIELDS[record])]
        return tuple(map(packed, value)) if type(value) is tuple else value

    def unpacked(value: Any, records: Mapping[str, type]) -> Any:
        """The record that was packed. records: the classes, by name"""
        if type(value) is list:
            record = records[value[0]]
            made = object.__new__(record)
            made.__dict__.update(zip(_FIELDS[record], [unpacked(each, records) for each in value[1:]], strict=True))
            return made
        return tuple([unpacked(each, records) for each in value]) if type(value) is tuple else value
