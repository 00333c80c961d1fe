"""The software recipe of the vanilla distribution: downloads, own programs, layout of the tree.

`build` makes and checks the tree. Files that are no Python modules are data of the recipe (see
README.md).
"""
