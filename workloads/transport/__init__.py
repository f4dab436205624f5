"""Connections to servers, as locks and resources use them."""
