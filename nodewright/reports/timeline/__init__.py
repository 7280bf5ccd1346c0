"""One Machine's story in the order of time, from what the API server still knows."""
