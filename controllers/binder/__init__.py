"""Which pending pod goes to which Node, where no kube-scheduler runs: the embedded control plane.

Not a controller of its own: asked by the runtime as a whole, for all pods at once.
"""
