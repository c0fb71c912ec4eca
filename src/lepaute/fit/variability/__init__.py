"""What varies beyond the noise of single calls: days, episodes, crowding, frequency, discrepancy."""
