"""What `lwskit doctor` finds in a cluster: what nobody owns, what no spec asks for, what does not serve. Pure."""
