"""What the speed of the engine is measured with."""
