"""Selects the files that the check_*.py scripts read."""

import os
import pathlib
import subprocess

SKIPPED = {".git", ".venv", "build", "data", "run", "__pycache__"}


def list_files(root):
    """The files of the tree that git would keep; without git, all but what builds and runs leave."""
    root = pathlib.Path(root)
    git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if (root / ".git").exists():
        try:
            names = subprocess.run(git, capture_output=True, check=True).stdout.decode().split("\0")
            return sorted(root / name for name in names if name and (root / name).is_file())
        except (OSError, subprocess.CalledProcessError):
            pass
    found = []
    for folder, folders, names in os.walk(root):
        top = pathlib.Path(folder) == root
        folders[:] = [f for f in folders if not (f in SKIPPED if top else f == "__pycache__")]
        if top:
            folders[:] = [f for f in folders if not f.startswith("build")]
        found += [pathlib.Path(folder) / name for name in names]
    return sorted(found)
