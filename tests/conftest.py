"""What tests of every kind share."""

pytest_plugins = ["farms.fixtures"]
