"""The command line. Its commands are thin: they read options, call the program below and print."""
