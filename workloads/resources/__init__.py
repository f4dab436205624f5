"""What a lock protects, and the guards by which it accepts or refuses a write."""
