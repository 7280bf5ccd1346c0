"""Being written by TABLE (a colleague) since 20:12; PATCHES: please leave table, jsonpath and protobuf alone and go on with managedfields and openapi."""
