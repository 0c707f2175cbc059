"""PickyMan's scheduler."""
