"""What a release consists of: package, image, manifests, lists of what is in them, and the proof of where they are from."""
