"""The whole service in one process on a virtual clock, driven by seeds and by lists of cases."""
