"""Benchmarks of svcd: ratios within one run, for a machine's speed drifts between runs.

Run by `make bench`, or `python -m benchmarks [--quick] [--json FILE] [NAME ...]`.

CPU figures are those of the measured process alone, from the kernel's own clock of that process.
Every figure is taken in several rounds; where things are compared, their rounds take turns.
"""
