"""The program that an experiment starts on each node.

It travels as source over the connection that starts it and is gone with it: nothing is installed on a node. Hence the
rules of this package: nothing but the standard library of Python 3.9, and of ours `lepaute.kit.sessions`; imports
inside the package are relative; no module does anything when imported. The controller's side imports them, too.
"""
