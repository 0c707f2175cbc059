"""The signature tables: data, one file a stack, and the reasons that they name."""
