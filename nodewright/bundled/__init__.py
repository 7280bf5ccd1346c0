"""The providers that come with the program, one module for each entry point.

Entry points name these, because the packages of the providers have another name in a wheel than in the repository.
"""
