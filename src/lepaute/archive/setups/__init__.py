"""The setup of an experiment as facts that can be compared: what was read from the files of an archive."""
