"""What archives hold, as tables and arrays that are checked: calls, runs, columns, factors."""
