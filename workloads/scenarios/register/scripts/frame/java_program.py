"""A program in Java, run from its source."""

import os


def java_command(folder, path, program):
    """Return the command that runs the class Show of a program with these jars."""
    place = os.path.join(folder, "Show.java")
    with open(place, "w") as file:
        file.write(program)
    return ["java", "-Xmx128m", "-cp", path, place]
