"""Models of kernels: the form of the mean, its regions, the noise, and the choice among them."""
