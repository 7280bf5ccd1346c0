"""The controllers in a cluster: their manifests, put there and taken away again."""
