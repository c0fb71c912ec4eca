"""Alarms: a procedure over all machines, factors and days that bounds the share of false ones."""
