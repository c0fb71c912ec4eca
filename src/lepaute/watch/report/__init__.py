"""Few reports for a person, of thousands of tests."""
