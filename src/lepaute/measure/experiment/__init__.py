"""An experiment from its design to its archive."""
