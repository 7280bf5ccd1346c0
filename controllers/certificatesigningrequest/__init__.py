"""The CertificateSigningRequest reconciler: certificates of kubelets whose host is a Machine's, and of no others."""
