"""What the formats of Philly's files share."""
