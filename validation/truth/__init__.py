"""Made-up machines whose law is known: their calibrations as archives, and their further runs of HPL."""
