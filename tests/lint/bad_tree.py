"""Small trees on disk for the tests of the checks."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))


class TreeTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.tree = pathlib.Path(self._folder.name)

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_script(self, script, *args, **env):
        """(exit status, what it printed)."""
        command = [sys.executable, "-B"] if script.endswith(".py") else ["bash"]
        done = subprocess.run([*command, str(ROOT / "scripts" / script), *args], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, **env}, check=False)
        return done.returncode, done.stdout
