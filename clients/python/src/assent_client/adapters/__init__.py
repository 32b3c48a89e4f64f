"""Adapters: agents of other frameworks, whose tools run only as calls that may. Each module needs its framework."""
