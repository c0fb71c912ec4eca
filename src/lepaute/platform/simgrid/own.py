"""What lepaute writes for itself into the properties of a zone, as JSON: SimGrid does not read it, import does."""

import math
from typing import Any, Final

from lepaute.errors import InputError
from lepaute.kit.documents import read_json
from lepaute.platform.simgrid.reading import Element

PREFIX: Final = "lepaute:"
#: Of each property, the types that its value may have.
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "name": (str,),
    "description": (str,),
    "source": (str,),
    "nodes": (dict,),
    "sharing": (str,),
    "node_link_Bps": (float, int),
    "loopback_Bps": (float, int),
    "latency": (str,),
    "enveloped": (list,),
    "topology": (dict,),
}


def own_properties(root: Element, origin: str) -> dict[str, Any]:
    """The properties, without their prefix, of the zones in `root`; `origin` is the file's name in messages.

    Raises InputError for one that lepaute does not write.
    """
    properties: dict[str, Any] = {}
    for zone in root.all("zone"):
        for name, text in zone.properties().items():
            if not name.startswith(PREFIX):
                continue
            types = _TYPES.get(name.removeprefix(PREFIX), ())
            try:
                value = read_json(text, name)
            except InputError:
                value = None
            sound = isinstance(value, types) and not isinstance(value, bool)
            if not sound or (isinstance(value, float | int) and not 0 < value < math.inf):
                raise InputError(
                    f"{origin}:{zone.line}: the property {name[:60]} is {text[:60]!r}, which Lepaute never writes; "
                    "remove it"
                )
            properties[name.removeprefix(PREFIX)] = value
    return properties
