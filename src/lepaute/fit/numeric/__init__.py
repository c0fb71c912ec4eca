"""Array types, least squares and mixtures: numerical methods that know nothing of archives."""
