"""Decision trees over whole numbers: fitted exactly, written as rules that people read and edit, read back."""
