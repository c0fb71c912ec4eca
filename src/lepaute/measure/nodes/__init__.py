"""The controller's side of the nodes: a connection to each, and commands and files on all of them."""
