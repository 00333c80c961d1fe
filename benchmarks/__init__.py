"""Benchmarks of svcd: what requests, clusters, jobs and changes cost.

Run by `make bench`, or `python -m benchmarks [--quick] [--check] [NAME ...]`.

CPU figures are those of the measured process alone, by the kernel's clock of this process. Figures
have several rounds. A machine's speed drifts: where two things are compared, their rounds take
turns, and the ratio is taken round by round.
"""
