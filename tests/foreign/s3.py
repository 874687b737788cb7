# SPDX-License-Identifier: Apache-2.0
# Takes: moto[s3,iam,server] boto3
"""What boto3 puts into buckets of a server that checks signatures (moto) is what Orrery reads of s3:// addresses, and
it is refused with a wrong secret.

Arguments: the build tree.
"""
import http.server
import json
import os
import pathlib
import random
import socketserver
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import boto3

BUILD = pathlib.Path(sys.argv[1]).resolve()
KEYS = ["a.bin", "folder/a b.bin", "run=1/step+2.bin", "ü/日本.bin", "100%20.bin", "(a)!*'.bin"]
SCRIPT = 'print(require("orrery.remote").path(arg[1]))'
CALLS_TO_SET_UP = 4  # that moto takes without a signature


def free_port():
    with socketserver.TCPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        return server.server_address[1]


def wait_for(endpoint):
    for _ in range(300):
        try:
            urllib.request.urlopen(endpoint + "/moto-api/").close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(endpoint)


def client(kind, endpoint, key, secret):
    return boto3.client(kind, endpoint_url=endpoint, aws_access_key_id=key, aws_secret_access_key=secret,
                        region_name="us-east-1")


def make_user(endpoint):
    """An access key, and its secret, of somebody who may do everything with buckets."""
    iam = client("iam", endpoint, "nobody", "nothing")
    iam.create_user(UserName="reader")
    iam.put_user_policy(UserName="reader", PolicyName="all", PolicyDocument=json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}))
    made = iam.create_access_key(UserName="reader")["AccessKey"]
    client("s3", endpoint, "nobody", "nothing").create_bucket(Bucket="bucket")
    return made["AccessKeyId"], made["SecretAccessKey"]


def read(folder, endpoint, key, secret, name):
    script = pathlib.Path(folder, "script.lua")
    script.write_text(SCRIPT.replace("arg[1]", json.dumps("s3://bucket/" + name, ensure_ascii=False)))
    return subprocess.run([BUILD / "orrery", "run", "--no-dir", script], capture_output=True, text=True, timeout=120, check=False,
                          env={"PATH": "/usr/bin:/bin", "HOME": folder, "no_proxy": "*", "AWS_ENDPOINT_URL": endpoint,
                               "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret})


def check(folder, endpoint):
    key, secret = make_user(endpoint)
    bucket = client("s3", endpoint, key, secret)
    for name in KEYS:
        body = random.Random(name).randbytes(100_000)
        bucket.put_object(Bucket="bucket", Key=name, Body=body)
        done = read(folder, endpoint, key, secret, name)
        assert done.returncode == 0, done.stderr
        assert pathlib.Path(done.stdout.strip()).read_bytes() == body, name
    refused = read(folder, endpoint, key, secret[::-1], KEYS[0])
    assert refused.returncode != 0 and "SignatureDoesNotMatch" in refused.stderr, refused.stderr
    print(f"s3: {len(KEYS)} files are alike, a wrong secret is refused")


def main():
    endpoint = f"http://127.0.0.1:{free_port()}"
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", endpoint.rsplit(":", 1)[1]],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=os.environ | {"INITIAL_NO_AUTH_ACTION_COUNT": str(CALLS_TO_SET_UP)})
    try:
        wait_for(endpoint)
        with tempfile.TemporaryDirectory() as folder:
            check(folder, endpoint)
    finally:
        server.terminate()
        server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
