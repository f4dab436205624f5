"""Guards, one file each: the rules by which a resource accepts or refuses a write."""
