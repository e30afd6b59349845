"""The commands. A module here is imported for every `--help`: what is heavy is imported where it is used."""
