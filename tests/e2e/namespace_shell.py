# SPDX-License-Identifier: Apache-2.0
"""Stands in for ssh: TAG [-OPTION...] HOST COMMAND... runs COMMAND in the network namespace that TAG and
HOST's last number name, with a host name and shared memory of its own. As with ssh, the command outlives a
shell that is killed, and only its stdin ends then.
"""
import os
import subprocess
import sys
import threading

tag, *words = sys.argv[1:]
while words[0].startswith("-"):
    words.pop(0)
host, *command = words
namespace = f"{tag}{host.rpartition('.')[2]}"
if not os.path.exists(f"/run/netns/{namespace}"):
    sys.exit(f"namespace_shell: there is no host {host}")
ALONE = "hostname $0 && mount -t tmpfs -o size=512m tmpfs /dev/shm && exec sh -c \"$1\""
remote = subprocess.Popen(["ip", "netns", "exec", namespace, "unshare", "--uts", "--mount", "sh", "-c", ALONE,
                           namespace, " ".join(command)], stdin=subprocess.PIPE, start_new_session=True)


def pass_on():
    while data := os.read(0, 65536):
        remote.stdin.write(data)
        remote.stdin.flush()
    remote.stdin.close()


threading.Thread(target=pass_on, daemon=True).start()
code = remote.wait()
sys.stdout.flush()
os._exit(code if code >= 0 else 255)
