"""A package, so that its conftest and helpers are not confused with those of the folder above."""
