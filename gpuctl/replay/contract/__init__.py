"""What a policy is, what it sees and may do, and the checks that any policy must pass."""
