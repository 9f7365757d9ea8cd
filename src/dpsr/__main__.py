"""`python -m dpsr` is the `dpsr` command."""

from dpsr.cli import main

if __name__ == "__main__":
    main()
