"""What people and machines see of a process: metrics, logs, spans and health."""
