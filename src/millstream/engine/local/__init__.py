"""The local engine: the plan and its kernels in one process."""
