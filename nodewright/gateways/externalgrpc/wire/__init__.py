"""What crosses the wire: our .proto files and the code that `make proto` makes of them."""
