"""The command line: parses arguments, calls one service, prints. No logic, no SQL, no arithmetic."""
