"""Empty a Node politely: cordon it, evict its pods, say what is in the way. Pure; nothing is ever forced."""
