"""What admission would say of manifests, and what their authors would regret, offline. Pure but for `files`."""
