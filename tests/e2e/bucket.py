# SPDX-License-Identifier: Apache-2.0
"""A server of buckets on loopback that speaks S3's protocol, for checkpoints: it computes each signature anew, by the
rules of Amazon's documentation (Signature Version 4), and the hash of what it is sent."""
import hashlib
import hmac
import http.server
import re
import threading
import time
import urllib.parse

KEY, SECRET, SESSION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/with+signs="
ERROR = "<?xml version='1.0'?><Error><Code>%s</Code><Message>no</Message></Error>"
PAGE = 3  # files in a list, so that there are several


def signature(handler, secret, region, body=b""):
    """What the header Authorization must end with, of the request as it has come."""
    given = dict(part.strip().split("=", 1) for part in handler.headers["Authorization"].split(" ", 1)[1].split(","))
    day, found_region, service, end = given["Credential"].split("/")[1:]
    assert (found_region, service, end) == (region, "s3", "aws4_request"), given
    names = given["SignedHeaders"].split(";")
    assert {"host", "x-amz-content-sha256", "x-amz-date"} <= set(names) and names == sorted(names), names
    assert handler.headers["x-amz-content-sha256"] == hashlib.sha256(body).hexdigest()
    headers = "".join(f"{name}:{' '.join(handler.headers[name].split())}\n" for name in names)
    path, _, query = handler.path.partition("?")
    path = urllib.parse.quote(urllib.parse.unquote(path), safe="/-._~")
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    query = "&".join(f"{urllib.parse.quote(name, safe='-._~')}={urllib.parse.quote(value, safe='-._~')}" for name, value in pairs)
    request = "\n".join([handler.command, path, query, headers, ";".join(names), handler.headers["x-amz-content-sha256"]])
    scope = f"{day}/{region}/s3/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", handler.headers["x-amz-date"], scope, hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return given, hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


def etag_of(body):
    return '"' + hashlib.md5(body).hexdigest() + '"'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, body=b"", **headers):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refusal(self, body):
        """The code with which S3 would refuse the request, or None."""
        if not self.headers.get("Authorization"):
            return "AccessDenied"
        given, wanted = signature(self, SECRET, "us-east-1", body)
        if given["Credential"].split("/")[0] != KEY:
            return "InvalidAccessKeyId"
        return None if given["Signature"] == wanted else "SignatureDoesNotMatch"

    def answer(self):
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, query = self.path.partition("?")
        bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        server.requests.append((self.command, key or bucket))
        if fault := server.fault(self.command, key):
            time.sleep(fault if isinstance(fault, float) else 0)
            if isinstance(fault, int):
                return self.say(fault, ERROR % "Planned")
        if code := self.refusal(body):
            return self.say(403, ERROR % code)
        if bucket != "bucket":
            return self.say(404, ERROR % "NoSuchBucket")
        with server.lock:
            return getattr(self, "do_" + self.command.lower())(key, query, body)

    def do_get(self, key, query, _):
        files = self.server.files
        if not key:
            names = sorted(name for name in files if name.startswith(query["prefix"]) and name > query.get("continuation-token", ""))
            more = f"<NextContinuationToken>{names[PAGE - 1]}</NextContinuationToken>" if len(names) > PAGE else ""
            inner = "".join(f"<Contents><Key>{urllib.parse.quote(name, safe='/')}</Key></Contents>" for name in names[:PAGE])
            return self.say(200, f"<?xml version='1.0'?><ListBucketResult>{inner}{more}</ListBucketResult>")
        if key not in files:
            return self.say(404, ERROR % "NoSuchKey")
        return self.say(200, files[key], ETag=etag_of(files[key]))

    def keep(self, key, body):
        files, etag = self.server.files, etag_of(body)
        now = etag_of(files[key]) if key in files else None
        wanted, none = self.headers.get("If-Match"), self.headers.get("If-None-Match")
        if (wanted and wanted != now) or (none == "*" and now):
            return self.say(412, ERROR % "PreconditionFailed")
        files[key] = body
        if self.server.kept(key):
            self.close_connection = True  # what it says is lost
            return None
        return self.say(200, f"<Result><ETag>{etag}</ETag></Result>" if self.command == "POST" else b"", ETag=etag)

    def do_put(self, key, query, body):
        if "uploadId" not in query:
            return self.keep(key, body)
        self.server.uploads[query["uploadId"]][int(query["partNumber"])] = body
        return self.say(200, ETag=etag_of(body))

    def do_post(self, key, query, body):
        uploads = self.server.uploads
        if "uploads" in query:
            uploads[str(len(uploads))] = {}
            return self.say(200, f"<Result><UploadId>{len(uploads) - 1}</UploadId></Result>")
        parts = uploads.pop(query["uploadId"])
        said = re.findall(rb"<PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag>", body)
        assert [(int(number), tag.decode()) for number, tag in said] == [(n, etag_of(parts[n])) for n in sorted(parts)]
        return self.keep(key, b"".join(parts[n] for n in sorted(parts)))

    def do_delete(self, key, query, _):
        if "uploadId" in query:
            self.server.uploads.pop(query["uploadId"], None)
        else:
            self.server.files.pop(key, None)
        return self.say(204)

    do_GET = do_PUT = do_POST = do_DELETE = answer


def serve(test):
    """A server for a test, with one bucket: its files by their keys, and the requests that it got. `fault(method, key)`
    may return a status, or the seconds to wait as a float; `kept(key)` whether the reply is lost."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # of connections that are cut
    server.files, server.uploads, server.requests, server.lock = {}, {}, [], threading.Lock()
    server.fault, server.kept = lambda *_: None, lambda *_: False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return server
