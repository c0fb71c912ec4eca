"""The base of documents that Pydantic checks."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel

from lepaute.kit.notebook import Listed, Public

if TYPE_CHECKING:

    class PublicModel(BaseModel):
        """What type checkers see: they know the metaclass of Pydantic, and no other."""
else:

    class _ListedModel(Listed, type(BaseModel)):
        """Both metaclasses."""

    class PublicModel(Public, BaseModel, metaclass=_ListedModel):
        """A document whose dir() shows its fields and own methods, and none of Pydantic's."""

        _unlisted: ClassVar[frozenset[str]] = frozenset(name for name in dir(BaseModel) if not name.startswith("_"))
