"""Offline reports: a page that needs no script, no other file and no network, with its pictures and tables."""
