# SPDX-License-Identifier: Apache-2.0
"""Stands in for ssh: TAG HOST COMMAND runs COMMAND in the network namespace that TAG and HOST's last
number name. As with ssh, the command outlives a shell that is killed, and only its stdin ends then.
"""
import os
import subprocess
import sys
import threading

tag, host, command = sys.argv[1:]
last = host.rpartition(".")[2]
if not os.path.exists(f"/run/netns/{tag}{last}"):
    sys.exit(f"namespace_shell: there is no host {host}")
remote = subprocess.Popen(["ip", "netns", "exec", f"{tag}{last}", "sh", "-c", command],
                          stdin=subprocess.PIPE, start_new_session=True)


def pass_on():
    while data := os.read(0, 65536):
        remote.stdin.write(data)
        remote.stdin.flush()
    remote.stdin.close()


threading.Thread(target=pass_on, daemon=True).start()
code = remote.wait()
sys.stdout.flush()
os._exit(code if code >= 0 else 255)
