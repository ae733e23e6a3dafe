#!/usr/bin/env python3
"""Stands in for the applications of the examples: reads all files below the directories that it is given, writes to OUTPUT/result, OUTPUT being the last,
how many they were, and ends with $PROGRAM_ENDS."""
import os
import sys

*inputs, output = [arg for arg in sys.argv[1:] if not arg.startswith("--")]
count = 0
for directory in inputs:
    for entry in os.scandir(directory):
        with open(entry.path, "rb") as file:
            count += len(file.read()) > 0
os.makedirs(output, exist_ok=True)
with open(os.path.join(output, "result.new"), "w") as file:
    print(os.environ.get("SLURM_JOB_ID"), "read", count, "files", file=file)
os.replace(os.path.join(output, "result.new"), os.path.join(output, "result"))
sys.exit(int(os.environ.get("PROGRAM_ENDS", "0")))
