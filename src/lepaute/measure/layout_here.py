"""How the cores of this machine lie that this process may use."""

import os

from lepaute.measure.layout import MADE_UP, Layout, layout_of
from lepaute.measure.node_agent.layout_sources import layout_sources
from lepaute.measure.node_agent.system_files import SystemFiles


def layout_here() -> Layout:
    """Asks hwloc, or the kernel where it is not installed; raises InputError where the variable MADE_UP is wrong."""
    allowed = sorted(os.sched_getaffinity(0))
    return layout_of(layout_sources(SystemFiles("/"), allowed), allowed, os.environ.get(MADE_UP))
