"""What learns by PyTorch, Stable-Baselines3 or evolution, and runs on NumPy alone: nets as flat data, plain arrays."""
