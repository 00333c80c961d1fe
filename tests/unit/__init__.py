"""The tests of single modules of svcd, in the same folders."""
