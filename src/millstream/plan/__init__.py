"""From programs to plans: what is fused, in which order steps run, and what travels."""
