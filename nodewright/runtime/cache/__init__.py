"""A copy of the API server's objects, kept current by watches, with the indexes that rooms may ask."""
