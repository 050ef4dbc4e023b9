"""Measures how fast it is, and how near to what the machine allows."""
