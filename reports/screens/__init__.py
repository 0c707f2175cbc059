"""The screens of commands: their parts are data from result tables, and drawn in one place."""
