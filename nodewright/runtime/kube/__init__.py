"""A thin asynchronous Kubernetes client: where the server is, how to ask it, and what its answers mean."""
