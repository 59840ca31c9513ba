"""A package, so that its conftest and helpers are not mistaken for those of the folder above."""
