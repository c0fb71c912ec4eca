"""Open regressions, brought to where administrators look: messages, and a file for Prometheus."""
