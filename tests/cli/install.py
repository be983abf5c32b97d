# SPDX-License-Identifier: MIT
"""What meson install gives: mnm, its manual page, and completions that know every option."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import command_line

SOURCE = pathlib.Path(os.environ["MNM_SOURCE_ROOT"])
BUILD = os.environ["MNM_BUILD_ROOT"]
SHELLS = ("bash", "zsh", "fish")


class Install(command_line.Case):
    def commands(self):
        text = self.good("--help").decode()
        found = re.findall(r"^  ([a-z]+)  ", text.split("Subcommands:")[1], re.M)
        self.assertGreaterEqual(len(found), 9)
        return found

    def options(self, command):
        text = self.good(command, "--help").decode()
        return set(re.findall(r"(?<![\w-])--[a-z0-9][a-z0-9-]*", text.split("Options:")[1]
                              .split("\n\n")[0]))

    def test_the_manual_names_every_command_and_option(self):
        page = (SOURCE / "cli" / "mnm.1").read_text()
        named = set(re.findall(r"Fl -([a-z0-9][a-z0-9-]*)", page))
        for command in self.commands():
            self.assertIn(f".It Ic {command} ", page)
            for option in self.options(command):
                self.assertIn(option[2:], named, command)
        every = set().union(*map(self.options, self.commands())) | {"--version"}
        self.assertEqual({name for name in named if f"--{name}" not in every}, set())

    def test_completions_name_every_command_and_option(self):
        for shell in SHELLS:
            script = self.good("completion", shell).decode()
            for command in self.commands():
                self.assertIn(command, script)
                for option in self.options(command):
                    self.assertIn(f"-l {option[2:]}" if shell == "fish" else option, script)

    def test_shells_take_the_scripts(self):
        for shell in SHELLS:
            if not shutil.which(shell):
                continue
            path = self.folder / shell
            path.write_bytes(self.good("completion", shell))
            subprocess.run([shell, "-n", path], check=True)

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash_completes(self):
        script = self.good("completion", "bash").decode()

        def completed(*words):
            asked = " ".join(f"'{word}'" for word in words)
            text = f"{script}\nCOMP_WORDS=({asked}); COMP_CWORD={len(words) - 1}; _mnm\n" \
                   "printf '%s\\n' \"${COMPREPLY[@]}\""
            done = subprocess.run(["bash", "-c", text], stdout=subprocess.PIPE, check=True)
            return done.stdout.decode().split()

        self.assertEqual(completed("mnm", "qu"), ["quantize"])
        self.assertEqual(completed("mnm", "chat", "--top"), ["--top-p", "--top-k"])
        self.assertEqual(completed("mnm", "quantize", "--type", "q"), ["q8", "q4"])
        self.assertEqual(completed("mnm", "completion", "z"), ["zsh"])
        # bash splits at the equals sign.
        self.assertEqual(completed("mnm", "chat", "--cache", "="), ["f32", "f16", "q8"])
        self.assertEqual(completed("mnm", "chat", "--cache", "=", "q"), ["q8"])
        self.assertIn("ref", completed("mnm", "bench", "--kernel", ""))
        self.assertEqual(completed("mnm", "eval", "--data", "--"), [])

    @unittest.skipUnless(command_line.POSIX, "installed as one file there")
    def test_install(self):
        subprocess.run([*os.environ["MNM_MESON"].split(), "install", "-C", BUILD, "--no-rebuild",
                        "--quiet", "--destdir", self.folder], check=True,
                       stdout=subprocess.DEVNULL)
        names = {path.name for path in self.folder.rglob("*") if path.is_file()}
        self.assertTrue({"mnm", "mnm.1", "_mnm", "mnm.fish"} <= names, names)
        binary = next(path for path in self.folder.rglob("bin/mnm"))
        done = subprocess.run([*command_line.MNM[:-1], binary, "--version"],
                              stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout, self.good("--version"))
        page = next(self.folder.rglob("mnm.1"))
        if shutil.which("mandoc"):
            subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], check=True)


command_line.main()
