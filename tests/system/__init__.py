"""The whole service in this process, on its virtual clock."""
