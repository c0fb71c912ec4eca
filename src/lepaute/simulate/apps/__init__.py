"""Simulated applications: a folder each. A line here makes one known to the command line."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.simulate.application import Application

#: Name of the application -> its module and class.
APPLICATIONS = {
    "hpl": ("lepaute.simulate.apps.hpl", "Hpl"),
    "stencil": ("lepaute.simulate.apps.stencil", "Stencil"),
    "trace": ("lepaute.simulate.apps.replay", "TraceReplay"),
}


def class_modules() -> dict[str, str]:
    """Name of each application's class -> the module that it is imported from."""
    return {class_name: module for module, class_name in APPLICATIONS.values()}


def application_class(name: str) -> "type[Application]":
    module, class_name = APPLICATIONS[name]
    application: type[Application] = getattr(import_module(module), class_name)
    return application
