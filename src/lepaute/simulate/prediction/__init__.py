"""From runs to predictions: their spread, what they rest on, and several of them side by side."""
