"""What is no longer needed is given back: rarely by collections, and to the system."""
