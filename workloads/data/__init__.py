"""Data that the host prepared and checked: opened here, by every loader that does not open it itself."""
