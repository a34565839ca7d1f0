"""The worker: what trains and measures, inside the stack under test (standard library, torch, torchvision, numpy)."""
