"""Tables of every kind, checks of what a user passes in, encoding for the device."""
