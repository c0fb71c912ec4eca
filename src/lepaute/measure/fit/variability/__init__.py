"""What varies beyond the noise of single calls: days, wandering, crowding, frequency, discrepancy."""
