"""The validating admission webhook: what no schema can say is refused at ``kubectl apply``, with the field named."""
