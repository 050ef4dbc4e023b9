"""Measures the store beside its peers and the limits of the machine: ``python -m benches run``."""
