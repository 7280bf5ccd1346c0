"""A copy of the API server's objects, kept current by watches, with the indexes that reconcilers may ask."""
