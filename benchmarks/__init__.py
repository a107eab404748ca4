"""Measurements: CPU time, beside a baseline taken in the same run. `make bench` runs them all."""
