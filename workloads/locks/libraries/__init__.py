"""Third-party libraries, tested unmodified: each adapter only calls them."""
