"""Simulated applications: a folder each. An entry here makes one known everywhere."""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.apps.hpl import Hpl as Hpl
    from lepaute.simulate.apps.replay import TraceReplay as TraceReplay
    from lepaute.simulate.apps.stencil import Stencil as Stencil
    from lepaute.simulate.learn import learn as learn


class Entry(NamedTuple):
    """An application: its module and class, and the arguments and options of a run that help and tests show."""

    module: str
    class_name: str
    example: str


APPLICATIONS = {
    "hpl": Entry("lepaute.simulate.apps.hpl", "Hpl", "--n 20k --nb 128 --grid 8x8"),
    "stencil": Entry(
        "lepaute.simulate.apps.stencil", "Stencil", "--grid 2x1x1 --cells 512x512x512 --cell-time 2e-9 --noise 0.02"
    ),
    "trace": Entry("lepaute.simulate.apps.replay", "TraceReplay", "run.parquet"),
}


def application_class(name: str) -> "type[Application]":
    entry = APPLICATIONS[name]
    application: type[Application] = getattr(import_module(entry.module), entry.class_name)
    return application
