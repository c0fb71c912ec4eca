"""The published what-if studies on a hypothetical cluster of 256 nodes, repeated with the native engine."""
