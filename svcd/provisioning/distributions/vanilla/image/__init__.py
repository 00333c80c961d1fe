"""The software recipe of the vanilla distribution: what is fetched, compiled and laid out.

`build` makes and checks the tree, `defaults` extracts the default settings of its programs,
everything else in this folder is data of the recipe (see README.md).
"""
