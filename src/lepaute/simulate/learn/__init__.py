"""Learning an application from recordings."""
