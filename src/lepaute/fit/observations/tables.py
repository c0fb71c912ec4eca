"""Names of the tables of observations in the archive of a calibration."""

KERNELS = "observations/kernels.parquet"
P2P = "observations/p2p.parquet"
SEMANTICS = "observations/semantics.parquet"
RING = "observations/ring.parquet"
