"""One run: what it is to be, carried out, recorded, judged and stored; and many of them."""
