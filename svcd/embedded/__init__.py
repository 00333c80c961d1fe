"""The embedded cloud, its machines and the scripted engine: all behind the ordinary clients."""
