"""Benchmarks: ``python -m hack.bench [NAME…]`` prints tables and writes ``build/bench.json``. They judge nothing."""
