"""Sub-roles: the groups of a child shared out under names of their own (specification: 50 §13). Pure."""
