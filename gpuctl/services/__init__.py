"""What commands and the library both do: options as plain records, and what is done with them; nothing prints here."""
