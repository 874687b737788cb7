# SPDX-License-Identifier: Apache-2.0
# Takes: moto[s3,iam,server] boto3
"""What boto3 puts into buckets of a server that checks signatures (moto) is what Orrery reads of s3:// addresses, and
it is refused with a wrong secret. Checkpoints in such a bucket are continued as from a directory, those that are not
kept are gone, and a manifest that another has written meanwhile stays.

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
TRAINING = pathlib.Path(__file__).resolve().parents[1] / "e2e/checkpoints.lua"
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
    check_checkpoints(folder, endpoint, key, secret, bucket)


def train(folder, endpoint, key, secret, case, at, *more, ranks=2):
    return subprocess.run([BUILD / "orrery", "run", "--no-dir", "-n", str(ranks), TRAINING, f"case={case}", f"at={at}", *more],
                          capture_output=True, text=True, timeout=300, check=False,
                          env={"PATH": "/usr/bin:/bin", "HOME": folder, "no_proxy": "*", "ORRERY_PIN": "none", "AWS_ENDPOINT_URL": endpoint,
                               "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret})


def digest(done):
    assert done.returncode == 0, done.stderr
    return done.stdout.split("digest ")[1]


def check_checkpoints(folder, endpoint, key, secret, bucket):
    here, there = pathlib.Path(folder, "here"), "s3://bucket/a run=1/ckpt"

    def keys():
        found = bucket.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix="a run=1/")
        return [one["Key"] for page in found for one in page.get("Contents", [])]
    for steps in ("6", "10"):
        alike = {digest(train(folder, endpoint, key, secret, "series", at, "steps=" + steps, "best=loss")) for at in (here, there)}
        assert len(alike) == 1, alike
    kept = {name.split("/")[2] for name in keys()}
    assert kept == {path.name for path in here.glob("step-*")}, kept
    for ranks in (1, 3):
        assert digest(train(folder, endpoint, key, secret, "load", there, ranks=ranks)) \
            == digest(train(folder, endpoint, key, secret, "load", here, ranks=ranks))
    refused = train(folder, endpoint, key, secret[::-1], "save", there)
    assert refused.returncode == 1 and "SignatureDoesNotMatch" in refused.stderr, refused.stderr
    check_long(folder, endpoint, key, secret, bucket)
    print(f"s3: checkpoints are alike, {len(keys())} files of {len(kept)} are kept")


def check_long(folder, endpoint, key, secret, bucket):
    """A file that is sent in parts, and conditions, by the functions that checkpoints are kept by."""
    bucket.put_object(Bucket="bucket", Key="race/checkpoint.json", Body=b"{}")
    refused = train(folder, endpoint, key, secret, "save", "s3://bucket/race")
    assert "is not of a checkpoint" in refused.stderr, refused.stderr
    script = pathlib.Path(folder, "long.lua")
    script.write_text("""local orrery = require "orrery"
local row = {}
for i = 1, 4200 do row[i] = i % 5 / 5 end
local model = orrery.nn.linear(4200, 4200)
local run = orrery.compile(function(b) return model(b.x):mean() end, { params = model, optimizer = orrery.optim.sgd { lr = 0.1 } })
run:step { x = orrery.tensor { row } }
run:save "s3://bucket/long"
local saved = orrery.digest(model)
run:step { x = orrery.tensor { row } }
run:load "s3://bucket/long"
assert(saved == orrery.digest(model))
print "alike"
""")
    done = subprocess.run([BUILD / "orrery", "run", "--no-dir", script], capture_output=True, text=True, timeout=300, check=False,
                          env={"PATH": "/usr/bin:/bin", "HOME": folder, "no_proxy": "*", "AWS_ENDPOINT_URL": endpoint,
                               "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret})
    assert done.returncode == 0 and "alike" in done.stdout, done.stderr
    # A manifest that has changed since it was looked at.
    text = bucket.get_object(Bucket="bucket", Key="long/checkpoint.json")["Body"].read()
    racing = pathlib.Path(folder, "race.lua")
    racing.write_text(script.read_text().split("local saved")[0].replace('run:save "s3://bucket/long"', """run:save("s3://bucket/long", "", false)
print "begun" io.stdout:flush() io.read "l"
run:finish_save()
"""))
    job = subprocess.Popen([BUILD / "orrery", "run", "--no-dir", racing], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, env={"PATH": "/usr/bin:/bin", "HOME": folder, "no_proxy": "*", "AWS_ENDPOINT_URL": endpoint,
                                           "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret})
    while "begun" not in (line := job.stdout.readline()):
        assert line, job.stderr.read()
    bucket.put_object(Bucket="bucket", Key="long/checkpoint.json", Body=text + b"\n")
    _, said = job.communicate("\n", timeout=300)
    assert job.returncode == 1 and "another process has saved there" in said, said
    assert bucket.get_object(Bucket="bucket", Key="long/checkpoint.json")["Body"].read() == text + b"\n"
    print("s3: a manifest that has changed stays")


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
