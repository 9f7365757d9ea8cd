"""Files of ratings in any layout that is known."""
