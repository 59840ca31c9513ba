"""A service that speaks the contract and computes with Python functions."""
