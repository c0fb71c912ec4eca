"""Platforms as SimGrid's XML, for its MPI emulator SMPI: out, and in again."""

from lepaute.simulate.platform.simgrid.exporting import Exported, Wiring, export_xml, holds_loopback, host_name
from lepaute.simulate.platform.simgrid.importing import Imported, import_xml

__all__ = ["Exported", "Imported", "Wiring", "export_xml", "holds_loopback", "host_name", "import_xml"]
