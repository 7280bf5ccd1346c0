"""The nouns: types, names and validation of the group ``cluster.k8s.io/v1alpha1`` (KEP-3's lineage).

``names``, ``conditions``, ``selectors``, ``intorstring``, ``durations``, ``quantity``, ``providerconfig`` and
``validate`` work on plain data and import no pydantic; ``meta`` and one module per kind hold the pydantic types, from
which the CRDs in ``crds/`` are generated. Nothing here imports anything of ours outside ``api``, reads a clock or does
I/O.
"""
