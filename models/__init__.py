"""What is trained: one file a workload, each readable as a plain PyTorch example. Runs inside the stack under test."""
