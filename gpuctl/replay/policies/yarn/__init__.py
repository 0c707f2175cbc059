"""What Hadoop's YARN schedulers are configured with, and what both of them share."""
