"""The nodes: their image, and what runs on them."""
