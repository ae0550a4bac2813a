"""What admission would say of manifests, and what their authors would regret, without a cluster. Pure but for `files`."""
