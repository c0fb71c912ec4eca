"""Has this machine changed, since when, and which others? Tests of factors over days, against what went before."""
