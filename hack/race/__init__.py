"""Our autoscaler beside Karpenter: the same pods on the same kube-apiserver, in turns (``make bench-race``)."""
