"""`dpsr studio`: a local page that leads from a file of ratings to a release."""
