"""scripts/setup.sh, with made-up package tools in the PATH."""

import os
import shutil
import unittest

from bad_tree import TreeTest


class SetupTest(TreeTest):
    def fake(self, name, script):
        path = self.write(f"bin/{name}", f"#!{shutil.which('bash')}\n{script}\n")
        path.chmod(0o755)

    def setup(self, *args, **env):
        tools = self.tree / "bin"
        tools.mkdir(exist_ok=True)
        for tool in ("bash", "env", "mktemp", "rm", "tail", "dirname"):
            if not (tools / tool).exists():
                (tools / tool).symlink_to(shutil.which(tool))
        return self.run_script("setup.sh", *args, PATH=str(tools), **env)

    def fake_debian(self, installed, user):
        known = "|".join(installed) or "-"
        self.fake("dpkg-query", f'case "${{@: -1}}" in {known}) echo -n installed ;; *) exit 1 ;; esac')
        self.fake("apt-get", f'echo "$DEBIAN_FRONTEND $*" >> "{self.tree}/calls"')
        self.fake("id", f"echo {user}")

    def calls(self):
        path = self.tree / "calls"
        return path.read_text() if path.exists() else ""

    def test_does_nothing_where_all_is_there(self):
        self.fake_debian(["*"], user=0)
        status, out = self.setup()
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"^setup: all \d+ packages are installed\n$")
        self.assertEqual(self.calls(), "")

    def test_installs_exactly_what_is_missing(self):
        self.fake_debian(["build-essential", "lib*", "zlib1g-dev"], user=0)
        for tool in ("cmake", "ninja", "ccache", "git", "pkg-config", "python3", "mpirun"):
            self.fake(tool, "")
        status, out = self.setup()
        self.assertEqual(status, 0, out)
        self.assertIn("setup: installing protobuf-compiler\n", out)
        self.assertIn("noninteractive install -y --no-install-recommends protobuf-compiler\n",
                      self.calls())

    def test_uses_sudo_where_it_is_not_root(self):
        self.fake_debian(["[!z]*"], user=1000)
        self.fake("sudo", f'echo "sudo $*" >> "{self.tree}/calls"; exec "$@"')
        status, out = self.setup()
        self.assertEqual(status, 0, out)
        self.assertIn("sudo apt-get update", self.calls())
        self.assertIn("zlib1g-dev", self.calls())

    def test_says_what_to_ask_for_without_root_and_sudo(self):
        self.fake_debian(["[!z]*"], user=1000)
        status, out = self.setup()
        self.assertEqual(status, 1)
        self.assertIn("ask your administrator for: apt-get install zlib1g-dev", out)

    def test_shows_what_apt_said_when_it_fails(self):
        self.fake_debian(["[!z]*"], user=0)
        self.fake("apt-get", "echo no route to the mirror; exit 100")
        status, out = self.setup()
        self.assertEqual(status, 1)
        self.assertIn("no route to the mirror", out)
        self.assertIn("apt-get could not install: zlib1g-dev", out)

    def test_lists_what_is_needed_on_other_systems(self):
        status, out = self.setup()
        self.assertEqual(status, 1)
        self.assertIn("this is not a Debian system", out)
        self.assertIn("oneDNN 2.6", out)

    def test_can_be_told_to_trust_what_is_there(self):
        status, out = self.setup(TRAINER_SKIP_SETUP="1")
        self.assertEqual(status, 0, out)
        self.assertIn("skipped", out)


if __name__ == "__main__":
    os.environ.pop("TRAINER_SKIP_SETUP", None)
    unittest.main()
