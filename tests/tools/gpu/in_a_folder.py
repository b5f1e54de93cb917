"""What the tests of scripts/gpu share: its modules on the path, and a bundle in a folder."""

import argparse
import os
import pathlib
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts/gpu"))
import bundle as gpu_bundle  # noqa: E402

PATIENT = 240  # seconds: a generous limit for waits that take less than one on an idle machine


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))

    def wait_for(self, done):
        end = time.monotonic() + PATIENT
        while not done():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def bundle(self, python="none", trainer="/bin/false", dry=True):
        args = argparse.Namespace(dry=dry, trainer=pathlib.Path(trainer), cifar10=None,
                                  python=python)
        return gpu_bundle.Bundle(ROOT, self.folder, args)

    def program(self, name, script):
        """Makes a shell script in the folder."""
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return path

    def set(self, module, name, value):
        """Replaces a name of a module until the end of the test."""
        self.addCleanup(setattr, module, name, getattr(module, name))
        setattr(module, name, value)
