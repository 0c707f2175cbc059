"""The signature tables: data, one file per stack, and the reasons that they name."""
