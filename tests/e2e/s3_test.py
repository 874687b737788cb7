# SPDX-License-Identifier: Apache-2.0
"""Files of S3 and of the Hugging Face Hub, of servers on loopback that look at who asks: signatures are computed anew
from what has come, by the rules of Amazon's documentation (Signature Version 4), and tokens go to no other host.

Arguments: the build tree.
"""
import os
import pathlib
import sys
import unittest

sys.path.append(os.path.dirname(__file__))
from bucket import KEY, SECRET, SESSION, signature  # noqa: E402
from http_test import TEXT, ServerTest, give, say  # noqa: E402


def to_signed(answer, region="us-east-1", session=None):
    """Gives the answer to those who sign with SECRET, to others what S3 says."""
    def check(handler):
        refusal = b"<?xml version='1.0'?><Error><Code>%s</Code><Message>no</Message></Error>"
        code = None
        if not handler.headers.get("Authorization"):
            code = b"AccessDenied"
        else:
            given, wanted = signature(handler, SECRET, region)
            if given["Credential"].split("/")[0] != KEY:
                code = b"InvalidAccessKeyId"
            elif given["Signature"] != wanted or handler.headers.get("x-amz-security-token") != session:
                code = b"SignatureDoesNotMatch"
        if not code:
            return answer(handler)
        handler.send_response(403)
        handler.send_header("Content-Length", str(len(refusal % code)))
        handler.end_headers()
        handler.wfile.write(refusal % code)
    return check


class Asked(ServerTest):
    def env(self, **more):
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {"HOME": str(home), "AWS_ENDPOINT_URL": self.url(""), "HF_ENDPOINT": self.url("")} | more

    def keys(self, **more):
        return self.env(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, **more)

    def denied(self, url, *texts, **env):
        done = self.run_script(f"data.text('{url}', {{ ctx = 8 }})", **env)
        self.assertNotEqual(done.code, 0)
        for text in texts:
            self.assertIn(text, done.err)
        self.assertNotIn(SECRET, done.err)


class S3(Asked):
    def test_file_of_a_bucket(self):
        self.server.answers = [to_signed(give(TEXT))]
        self.assertEqual(self.text("s3://bucket/a/text.txt", **self.keys()), TEXT)
        self.assertEqual(self.server.requests[0]["path"], "/bucket/a/text.txt")

    def test_names_with_blanks_and_signs(self):
        self.server.answers = [to_signed(give(TEXT))]
        self.assertEqual(self.text("s3://bucket/run=1/a b+c%20ü.txt", **self.keys()), TEXT)
        self.assertEqual(self.server.requests[0]["path"], "/bucket/run%3D1/a%20b%2Bc%2520%C3%BC.txt")

    def test_what_breaks_off_is_signed_too(self):
        self.server.answers = [to_signed(give(TEXT, until=100_000)), to_signed(give(TEXT))]
        self.assertEqual(self.text("s3://bucket/text.txt", **self.keys()), TEXT)
        self.assertEqual([request.get("range") for request in self.server.requests], [None, "bytes=100000-"])

    def test_sessions_and_regions(self):
        self.server.answers = [to_signed(give(TEXT), region="eu-central-1", session=SESSION)]
        env = self.keys(AWS_SESSION_TOKEN=SESSION, AWS_REGION="eu-central-1")
        self.assertEqual(self.text("s3://bucket/text.txt", **env), TEXT)

    def test_profiles(self):
        folder = self.folder / "home/.aws"
        env = self.env(AWS_PROFILE="team")
        folder.mkdir()
        (folder / "credentials").write_text(f"[default]\naws_access_key_id = no\naws_secret_access_key = no\n\n[team]\n"
                                            f"aws_access_key_id = {KEY}\naws_secret_access_key={SECRET}\n")
        (folder / "config").write_text("[default]\nregion = us-west-2\n[profile team]\nregion = eu-north-1\n")
        self.server.answers = [to_signed(give(TEXT), region="eu-north-1")]
        self.assertEqual(self.text("s3://bucket/text.txt", **env), TEXT)
        self.denied("s3://bucket/text.txt", "AWS_PROFILE is nobody, and neither ", "credentials nor ", "config has it",
                    **env | {"AWS_PROFILE": "nobody"})

    def test_files_for_everybody_are_not_signed(self):
        self.server.answers = [give(TEXT)]
        self.assertEqual(self.text("s3://bucket/text.txt", **self.env()), TEXT)
        self.assertNotIn("authorization", self.server.requests[0])

    def test_refusals(self):
        self.server.answers = [to_signed(give(TEXT))]
        url = "s3://bucket/text.txt"
        self.denied(url, "s3://bucket/text.txt: the server says 403 Forbidden (AccessDenied); set AWS_ACCESS_KEY_ID",
                    **self.env())
        self.denied(url, "(SignatureDoesNotMatch); check what the key may do, and that the bucket is in the region us-east-1",
                    **self.keys() | {"AWS_SECRET_ACCESS_KEY": "other"})
        self.denied(url, "there is a key without a secret; set both", **self.env(AWS_ACCESS_KEY_ID=KEY))
        for wrong in ("s3://bucket", "s3://bucket/", "s3://bucket/folder/"):
            self.denied(wrong, f"{wrong}: no address of a file in S3; write s3://BUCKET/KEY", **self.keys())

    def test_a_signature_follows_no_redirection(self):
        self.server.answers = [say(301, Location=self.url("/elsewhere"))]
        self.denied("s3://bucket/text.txt", "301", "AWS_REGION", **self.keys())
        self.assertEqual(len(self.server.requests), 1)


class Hub(Asked):
    def test_files_and_revisions(self):
        self.server.answers = [give(TEXT)]
        for address, path in {"hf://org/model/a/text.txt": "/org/model/resolve/main/a/text.txt",
                              "hf://org/model@v1.0/text.txt": "/org/model/resolve/v1.0/text.txt",
                              "hf://datasets/org/set@refs%2Fpr%2F1/t.txt": "/datasets/org/set/resolve/refs%2Fpr%2F1/t.txt"}.items():
            self.server.requests.clear()
            self.assertEqual(self.text(address, **self.env()), TEXT)
            self.assertEqual(self.server.requests[0]["path"], path)
            self.assertNotIn("authorization", self.server.requests[0])
        self.denied("hf://org/model", "hf://org/model: no address of a file of the Hugging Face Hub", **self.env())

    def test_token_is_for_the_hub_alone(self):
        other = self.serve()
        other.answers = [give(TEXT)]
        elsewhere = f"http://127.0.0.1:{other.server_port}/store"
        home = self.env()["HOME"]
        kept = pathlib.Path(home, ".cache/huggingface/token")
        kept.parent.mkdir(parents=True)
        kept.write_text("hf_kept\n")
        for address in ("hf://org/model/text.txt", self.url("/org/model/resolve/main/text.txt")):
            for more, token in (({"HF_TOKEN": "hf_given"}, "hf_given"), ({"XDG_CACHE_HOME": ""}, "hf_kept")):
                self.server.answers = [say(302, Location=elsewhere)]
                self.server.requests.clear(), other.requests.clear()
                self.assertEqual(self.text(address, **self.env(**more)), TEXT)
                self.assertEqual(self.server.requests[0]["authorization"], f"Bearer {token}")
                self.assertNotIn("authorization", other.requests[0])
        other.requests.clear()
        self.assertEqual(self.text(elsewhere, **self.env(HF_TOKEN="hf_given")), TEXT)
        self.assertNotIn("authorization", other.requests[0])

    def test_gated_files(self):
        self.server.answers = [say(401)]
        self.denied("hf://org/model/text.txt", "401", "gated and private files want a token: set HF_TOKEN", **self.env())
        self.server.answers = [say(403)]
        self.denied("hf://org/model/text.txt", "403", "must have been given access", **self.env(HF_TOKEN="hf_given"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
