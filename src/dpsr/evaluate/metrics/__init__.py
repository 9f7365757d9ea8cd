"""What is measured: errors, ranked lists, and whether a difference is real. Raw values are read: not private."""
