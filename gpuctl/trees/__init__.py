"""Decision trees over whole numbers: fitted exactly, written as editable rules, and read back."""
