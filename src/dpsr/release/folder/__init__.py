"""The release folder: how it appears whole, and what it holds."""
