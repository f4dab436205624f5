"""Libraries that people install, tested as they are: each adapter calls and adds nothing."""
