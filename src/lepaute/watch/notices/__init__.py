"""What no change shows: machines unlike their peers, that are absent, or whose dates run backwards."""
