"""Changes that the data show and the changelog lacks, and what a planned change did."""
