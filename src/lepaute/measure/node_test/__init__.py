"""What the node test measures, a module each; `lepaute.measure.shipped.node_test` puts them together."""
