"""The routing toolkit: Klein registers and runs the handlers, a tree of segments finds them."""
