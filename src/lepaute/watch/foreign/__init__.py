"""Factor values from files that Lepaute did not write: one module a format, all of them read by `read_foreign`."""

from lepaute.watch.foreign.reading import FORMATS as FORMATS
from lepaute.watch.foreign.reading import read_foreign as read_foreign
