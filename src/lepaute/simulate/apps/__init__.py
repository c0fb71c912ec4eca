"""Simulated applications: a folder each. A line here makes one known to the command line."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.simulate.application import Application

#: Name of the application -> its module and class.
APPLICATIONS = {
    "hpl": ("lepaute.simulate.apps.hpl", "Hpl"),
    "stencil": ("lepaute.simulate.apps.stencil", "Stencil"),
}


def application_class(name: str) -> "type[Application]":
    """The class of the application `name`."""
    module, class_name = APPLICATIONS[name]
    application: type[Application] = getattr(import_module(module), class_name)
    return application
