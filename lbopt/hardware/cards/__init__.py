"""Cards: what documents or measurements say of devices and models."""
