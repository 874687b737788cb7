# SPDX-License-Identifier: Apache-2.0
"""`orrery run --hosts` through ssh as it is: on each host a sshd with keys and settings of this test, and
a client that is told to find them. Skipped where there is no sshd (docs/hosts.md).

Arguments: the build tree.
"""
import fcntl
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
import unittest

from program import BUILD, HERE, orrery, wait_for
from two_hosts import DEADLINE, GPT, NET, TAG, TwoHosts, digest, in_namespace, ip, ranks

# What the host's own profile says of our variables does not count, and its greeting is in nobody's way.
SERVER = """\
ListenAddress {address}
HostKey {room}/host_key
AuthorizedKeysFile {room}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
PidFile none
Banner {room}/banner
SetEnv MASTER_ADDR=127.0.0.9 MASTER_PORT=1 ORRERY_DEADLINE=77 ORRERY_TOKEN=theirs
"""
# Hosts 3 to 5 are the second one for a user who has not yet done what it takes; 6 runs what it likes.
CLIENT = f"""\
Host {NET}.3
  UserKnownHostsFile /dev/null
Host {NET}.4
  IdentityFile {{room}}/unknown_key
Host {NET}.5
  UserKnownHostsFile {{room}}/old_known_hosts
Host {NET}.6
  IdentityFile {{room}}/bound_key
Host {NET}.3 {NET}.4 {NET}.5 {NET}.6
  HostName {NET}.2
Host * !{NET}.4 !{NET}.6
  IdentityFile {{room}}/key
Host *
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {{room}}/known_hosts
  GlobalKnownHostsFile none
  RequestTTY force
"""
LINE = """
local orrery = require "orrery"
local model = orrery.nn.linear(1, 1)
orrery.log("digest %s", orrery.digest(model))
"""


class Ssh(TwoHosts, unittest.TestCase):
    launcher = ("ip", "netns", "exec", f"{TAG}1")

    @classmethod
    def setUpClass(cls):
        cls.sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        if not cls.sshd or not shutil.which("ssh"):
            raise unittest.SkipTest("no ssh and sshd here (docs/hosts.md says how to have them)")
        super().setUpClass()
        cls.room = pathlib.Path(cls.folder.name)
        cls.write_keys()
        (cls.room / "banner").write_text("Whoever enters here, be kind.")
        (cls.room / "client").write_text(CLIENT.format(room=cls.room))
        usage = orrery("run", "--help", ORRERY_DEADLINE=str(DEADLINE)).out
        cls.default = re.search(r"--remote-shell TEXT=(ssh .*)", usage)[1]
        cls.shell = f"{cls.default} -F {cls.room}/client"
        for n in (7, 8):
            ip("-n", f"{TAG}2", "addr", "add", f"{NET}.{n}/24", "dev", "v0")
        cls.daemons = [cls.serve(1), cls.serve(2), cls.serve(7, BUILD), cls.serve(8, cls.room / "here")]

    @classmethod
    def write_keys(cls):
        public = {}
        for key in ("host_key", "key", "unknown_key", "bound_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", cls.room / key], check=True)
            public[key] = (cls.room / f"{key}.pub").read_text()
        (cls.room / "authorized_keys").write_text(f'{public["key"]}command="true" {public["bound_key"]}')
        for file, key in (("known_hosts", "host_key"), ("old_known_hosts", "key")):
            (cls.room / file).write_text("".join(f"{NET}.{n} {public[key]}" for n in (1, 2, 7, 8)))

    @classmethod
    def serve(cls, number, hidden=None):
        """Starts the sshd at this address; its host has nothing in the folder `hidden`."""
        config, log = cls.room / f"sshd-{number}", cls.room / f"log-{number}"
        config.write_text(SERVER.format(room=cls.room, address=f"{NET}.{number}"))
        hide = f"mount -t tmpfs none '{hidden}' &&" if hidden else ""
        if hidden:
            hidden.mkdir(exist_ok=True)
        with open(log, "w") as errors:
            daemon = subprocess.Popen(
                ["ip", "netns", "exec", f"{TAG}{min(number, 2)}", "sh", "-c",
                 f'mount -t tmpfs none /run && mkdir /run/sshd && {hide} exec "$@"', "sh",
                 cls.sshd, "-D", "-e", "-f", config], stdin=subprocess.DEVNULL, stderr=errors)
        cls.addClassCleanup(daemon.wait)
        cls.addClassCleanup(daemon.kill)
        wait_for(lambda: "Server listening" in log.read_text() or daemon.poll(), 10)
        if daemon.poll():
            raise AssertionError(log.read_text())
        return daemon.pid

    def check_refused(self, number, words, remedy, script=HERE / "bad/forever.lua", **options):
        """One line says why a host cannot take part, long before the others would miss it."""
        begun = time.monotonic()
        job = self.on_hosts({1: 1, number: 1}, script, ORRERY_DEADLINE="60", **options)
        self.check_end(job, 69)
        self.assertLess(time.monotonic() - begun, 20)
        self.assertRegex(job.err.splitlines()[-1],
                         rf"^orrery: \S+/hosts-\d+:3: host {NET}\.{number}: {words}.* \(exit code \d+\){remedy}")

    def test_who_cannot_enter(self):
        advice = rf": '{self.default} -F \S+ {NET}\.%d true' must work and ask nothing; .*\(ssh-copy-id {NET}\.%d\)$"
        for number, words in ((3, r"Host key verification failed\."), (4, r".*: Permission denied \(publickey\)\."),
                              (5, r"Host key verification failed\."), (9, "ssh: connect to host .* port 22: ")):
            with self.subTest(number=number):
                self.check_refused(number, words, advice % (number, number))

    def test_who_lacks_something(self):
        self.check_refused(7, f".*{BUILD}/orrery", f": it takes '{self.default} .*' here and {BUILD}/orrery there$")
        folder = self.room / "here/there"
        folder.mkdir(parents=True)
        self.check_refused(8, f".*error: there is no directory {folder} ", "$", cwd=folder)
        self.check_refused(6, r".*be kind\.", ": what ran there was not Orrery: .*$")

    # In the background of a terminal ssh would wait for an answer that nobody can give.
    def test_nothing_asks_at_the_terminal(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        self.shell = f"ssh -F {self.room}/client"
        self.check_refused(3, r"Host key verification failed\.", ": ",
                           limit=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0))

    def test_names_that_a_shell_would_read(self):
        folder = self.room / "it's \"$HOME\" & `id`"
        script = folder / "\\a' ;$(id) *.lua"
        folder.mkdir()
        script.write_text(LINE)
        expected = digest(orrery("run", script.name, cwd=folder))
        self.assertEqual(digest(self.on_hosts({1: 1, 2: 1}, script.name, cwd=folder).finish()), expected)

    # Its words have no reader any more; what bears the job's name in shared memory is removed nevertheless.
    def test_killed_launcher_of_talkers(self):
        (self.room / "talk.lua").write_text('local orrery = require "orrery"\nwhile true do orrery.log("so") end\n')
        job = self.on_hosts({1: 1, 2: 1}, "talk.lua", cwd=self.room)
        self.assertEqual(job.process.stdout.readline(), "so\n")
        variables = pathlib.Path(f"/proc/{ranks()[0]}/environ").read_text().split("\0")
        name = next(v for v in variables if v.startswith("ORRERY_JOB=")).partition("=")[2]
        leaving = pathlib.Path(f"/dev/shm/orrery-{name}")
        leaving.touch()
        self.addCleanup(leaving.unlink, missing_ok=True)
        job.process.kill()
        self.check_end(job, -signal.SIGKILL)

    def test_killed_launcher_of_a_host(self):
        job = self.start()
        [victim] = [p for p in in_namespace(2) if b"\0--as-host\0" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes()]
        os.kill(victim, signal.SIGKILL)
        self.check_end(job, 75)
        self.assertRegex(job.err.splitlines()[-1], rf"^orrery: .*: host {NET}\.2: lost: .* \(exit code 255\)$")

    # ssh itself notices that its host is silent; there, the job ends once the other end is known to be gone.
    def test_cable_that_is_cut(self):
        job = self.forever({2: 2})
        ip("-n", f"{TAG}2", "link", "set", "v0", "down")
        self.addCleanup(ip, "-n", f"{TAG}2", "link", "set", "v0", "up")
        job.finish(30)
        self.assertEqual(job.code, 75, job.err)
        self.assertRegex(job.err.splitlines()[-1], rf": host {NET}\.2: lost: Timeout, server {NET}\.2 not responding")
        ip("-n", f"{TAG}2", "link", "set", "v0", "up")
        self.check_nothing_left(job)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
