"""Canaries in every field that holds a credential, and a search for them in all that is said."""
