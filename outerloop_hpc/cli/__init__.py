"""The command line: wiring only. Command modules import what they need inside their commands, so that help is quick."""
