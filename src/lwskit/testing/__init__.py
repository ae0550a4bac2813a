"""A pytest plugin, virtual time and polling assertions for tests of controllers."""
