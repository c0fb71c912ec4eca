"""Platforms as SimGrid's XML, for its MPI emulator SMPI: out, and in again."""

from lepaute.platform.simgrid.exporting import Exported, Wiring, export_xml, host_name

__all__ = ["Exported", "Wiring", "export_xml", "host_name"]
