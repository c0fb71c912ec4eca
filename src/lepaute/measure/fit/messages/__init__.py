"""Models of messages: protocols, segments of sizes, noise, links."""
