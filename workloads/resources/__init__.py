"""The resources that locks protect, and the guards by which they accept or refuse a write."""
