"""`dpsr studio`: a local page that leads a curator from a file of ratings to a release.

It reads no rating. Every step is the answer of a `dpsr` command, which runs as a process of its own and stands on the
page to be copied; a release is made by `dpsr release` itself. What is chosen travels in the address of the page, so
that two tabs are two trains of thought and each shows exactly what it would run.
"""
