"""Runs the input conditions: sources of every kind, under both policies of bad inputs; shards to verify, datasets to load.

    python handed_cases.py --bin DIR --cases FOLDER

FOLDER holds run_cases.py and expected.json. Ends with 77 (skipped) where it is not there.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cases", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    runner = arguments.cases / "run_cases.py"
    if not runner.exists():
        print(f"skipped: there is no {runner}")
        return 77
    with tempfile.TemporaryDirectory() as work:
        return subprocess.run([sys.executable, runner, "--bin", arguments.bin, "--work", work]).returncode


if __name__ == "__main__":
    sys.exit(main())
