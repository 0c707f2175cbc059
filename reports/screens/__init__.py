"""The one screen that a command answers with: its parts are data, made from result tables, and drawn in one place."""
