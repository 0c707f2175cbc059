"""Learning by PyTorch, Stable-Baselines3 or evolution; the nets are plain data and run on NumPy alone."""
