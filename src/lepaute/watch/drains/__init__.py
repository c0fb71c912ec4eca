"""Taking nodes that have regressed out of service: never without a confirmation, never against an administrator."""
