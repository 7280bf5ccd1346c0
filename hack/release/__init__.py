"""What a release consists of: package, image, manifests, lists of their contents, and where they are from."""
