"""The program that an experiment starts on each node.

It travels as source over the connection that starts it and is gone with it: nothing is installed on a node. Hence the
rules of this package: nothing but the standard library of Python 3.9, imports inside the package relative, nothing
else of ours but `lepaute.sessions`, no module that does anything when imported. On the engine's side the same modules are imported like any other.
"""
