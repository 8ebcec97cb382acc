"""Programs that make packaged data; they need a checkout and are no part of the package."""
