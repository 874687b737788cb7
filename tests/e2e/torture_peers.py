# SPDX-License-Identifier: Apache-2.0
"""Strangers at every port of a job: while two ranks form a world over TCP and train, all that listens gets noise, half a
message that never ends, a length of 4 GB, what the ranks have said to each other before, and more connections than it
takes. The job must end with the digest of an undisturbed one.
"""
import contextlib
import os
import pathlib
import random
import re
import socket
import struct
import tempfile
import threading
import time

from program import HERE, Job, session_members

SECRET = "of this test"
DEADLINE = 10


def listening(pid):
    """Ports of a process on loopback."""
    try:
        links = {os.readlink(p) for p in pathlib.Path(f"/proc/{pid}/fd").iterdir() if p.is_symlink()}
        rows = [row.split() for row in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    except OSError:
        return set()  # it has ended
    return {int(r[1].partition(":")[2], 16) for r in rows if r[3] == "0A" and f"socket:[{r[9]}]" in links}


def words_of_ranks(stop):
    """What goes over loopback until `stop`, by port, each with the port that it came from; who may not look gets nothing."""
    heard = {}
    try:
        ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(0x0800))
        ear.bind(("lo", 0))
    except OSError:
        return heard
    ear.settimeout(0.05)

    def listen():
        with ear:
            while not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    packet = ear.recv(65536)[14:]
                    if packet[9] != 6:
                        continue
                    segment = packet[4 * (packet[0] & 15):]
                    payload = segment[4 * (segment[12] >> 4):]
                    if payload and len(heard) < 5000:
                        source, to = struct.unpack("!HH", segment[:4])
                        heard.setdefault(to, []).append((source, payload))

    threading.Thread(target=listen, daemon=True).start()
    return heard


class PeerBlow:
    def __init__(self, seed, expected, pause=0.02):
        self.seed, self.expected, self.chance, self.attacks, self.open = seed, expected, random.Random(seed), {}, []
        self.replayed = 0
        self.own = set()  # ports of attacks
        stop = threading.Event()
        self.heard = words_of_ranks(stop)
        with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
            common = dict(WORLD_SIZE="2", LOCAL_WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                          ORRERY_TOKEN=SECRET, ORRERY_TEST_HOSTS="ab", ORRERY_DEADLINE=str(DEADLINE))
            words = ["run", "--threads", 1, HERE / "restarts.lua", f"folder={folder}", f"pause={pause}"]
            self.jobs = [Job(*words, RANK="0", **common)]
            try:
                self.strike(0.3)  # before the other has come
                self.jobs.append(Job(*words, RANK="1", **common))
                while any(job.process.poll() is None for job in self.jobs):
                    self.strike(0.1)
            finally:
                stop.set()
                for job in self.jobs:
                    job.finish(60) if job.process.poll() is None else job.finish()
                for one in self.open:
                    one.close()
            self.orphans = [pid for job in self.jobs for pid in session_members(job.process.pid)]
        self.job = self.jobs[0]

    def __str__(self):
        return f"peers, seed {self.seed}: {self.attacks}"

    def strike(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ports = {port for job in self.jobs for pid in session_members(job.process.pid) for port in listening(pid)}
            for port in ports:
                attack = self.chance.choice((self.noise, self.half, self.huge, self.replay, self.crowd))
                with contextlib.suppress(OSError):  # it has closed, or takes no more
                    attack(port)
                    self.attacks[attack.__name__] = self.attacks.get(attack.__name__, 0) + 1
            time.sleep(0.02)

    def connect(self, port):
        one = socket.create_connection(("127.0.0.1", port), timeout=0.2)
        self.open = self.open[-300:] + [one]  # they stay open
        self.own.add(one.getsockname()[1])
        return one

    def noise(self, port):
        self.connect(port).sendall(self.chance.randbytes(self.chance.randrange(1, 5000)))

    def half(self, port):
        self.connect(port).sendall(struct.pack("<II", 2, 1)[:self.chance.randrange(1, 8)])

    def huge(self, port):
        kind = self.chance.randrange(16)
        self.connect(port).sendall(struct.pack("<IIII", kind, self.chance.randrange(3), 0xffffffff, 0xfffffff0))

    def replay(self, port):
        one = self.connect(port)
        said = [payload for source, payload in self.heard.get(port, []) if source not in self.own]
        for payload in said[:self.chance.randrange(1, 5)]:
            one.sendall(payload)
            self.replayed += 1

    def crowd(self, port):
        for _ in range(40):
            self.connect(port)

    def complaints(self):
        if sum(self.attacks.values()) == 0:
            yield "no port was found"
        for rank, job in enumerate(self.jobs):
            digest = re.search(r"^digest (\w+)$", self.jobs[0].out, re.MULTILINE)
            if job.code != 0 or not digest or digest[1] != self.expected:
                yield f"rank {rank} ended with {job.code}, {digest and digest[1]} for {self.expected}: {job.err}"
        if self.orphans:
            yield f"left: {self.orphans}"
