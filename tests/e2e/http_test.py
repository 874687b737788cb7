# SPDX-License-Identifier: Apache-2.0
"""Files of servers, of one on loopback that behaves as the worst do: what is read is what the server has, what is cut
off is continued or begun anew, and never a mix of two states of a file.

Arguments: the build tree.
"""
import gzip
import http.server
import pathlib
import random
import shutil
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

from program import BUILD, orrery

FILES = pathlib.Path(__file__).resolve().parents[1] / "data/files"
RANDOM = random.Random(3)
TEXT = "".join(RANDOM.choice("abcdefgh \n") for _ in range(300_000)).encode()
OTHER = TEXT[::-1]


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves what the test's `answers` say, one for each request; the last one stays."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.requests.append({"path": self.path} | {name.lower(): value for name, value in self.headers.items()})
        answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        answer(self)


def say(status, **headers):
    def answer(handler):
        handler.send_response(status)
        handler.send_header("Content-Length", "3")
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(b"no\n")
    return answer


def give(body, etag='"1"', ranges=True, until=None, modified=None, careless=False, length=True, chunked=False):
    """The file, or the part that is asked for; `until`: the connection ends there. A careless server looks at no
    If-Range."""
    def answer(handler):
        begin = 0
        asked, known = handler.headers.get("Range"), handler.headers.get("If-Range")
        if asked and ranges and (careless or known in (etag, modified)):
            begin = int(asked.removeprefix("bytes=").removesuffix("-"))
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        else:
            handler.send_response(200)
        if length:
            handler.send_header("Content-Length", str(len(body) - begin))
        if chunked:
            handler.send_header("Transfer-Encoding", "chunked")
        if etag:
            handler.send_header("ETag", etag)
        if modified:
            handler.send_header("Last-Modified", modified)
        handler.end_headers()
        part = body[begin:until]
        try:
            handler.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(part), part) if chunked else part)
        except OSError:
            pass
        handler.close_connection = until is not None or not (length or chunked)
    return answer


class ServerTest(unittest.TestCase):
    """A server and scripts that read of it."""

    def setUp(self):
        if not (BUILD / "plugins/orrery-data-http.so").exists():
            self.skipTest("the plugin http is not built: there is no libcurl4-openssl-dev")
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.server = self.serve()

    def serve(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # of connections that are cut
        server.requests, server.answers = [], [say(404)]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def url(self, path="/a/text.txt", scheme="http", at="127.0.0.1"):
        return f"{scheme}://{at}:{self.server.server_port}{path}"

    def run_script(self, body, *words, **env):
        script = self.folder / "script.lua"
        script.write_text('local orrery = require "orrery"\nlocal data = orrery.data\n' + body)
        env = {"XDG_CACHE_HOME": str(self.folder / "cache"), "no_proxy": "*"} | env
        return orrery("run", "--no-dir", *words, script, **env)

    def text(self, url=None, **env):
        """The text that a script reads of an address."""
        body = f"local text = orrery.engine.read_source(require('orrery.remote').path '{url or self.url()}', {{}}) " \
               f"local f = io.open('{self.folder}/out', 'wb') f:write(text) f:close()"
        done = self.run_script(body, **env)
        self.assertEqual(done.code, 0, done.err)
        return (self.folder / "out").read_bytes()

    def refused(self, *texts, url=None):
        done = self.run_script(f"data.text('{url or self.url()}', {{ ctx = 8 }})")
        self.assertNotEqual(done.code, 0)
        for text in texts:
            self.assertIn(text, done.err)
        return done.err

    def copies(self):
        return [path for path in (self.folder / "cache").rglob("*") if path.is_file() and path.suffix != ".lock"]


class Http(ServerTest):
    def test_readers(self):
        """What each reads of a server is what it reads of the file, packed or not."""
        names = {"/squares.npy": FILES / "squares.npy", "/i.gz": FILES / "images.idx.gz", "/l.gz": FILES / "labels.idx.gz",
                 "/w.safetensors": FILES / "pt/layers.safetensors", "/w.bin": FILES / "pt/layers.bin",
                 "/tokens.bin": FILES / "tokens.bin"}
        self.server.answers = [lambda handler: give(names[handler.path].read_bytes(), handler.path.join('""'))(handler)]
        done = self.run_script(f"""
          local function digest(set)
            for _, b in set:batches {{ size = 2, steps = 2 }} do
              for _, x in pairs(b) do print(table.concat(x:read():view(-1):tolist(), " ")) end
            end
          end
          local here, there = "{FILES}/", "{self.url('/')}"
          for _, at in ipairs {{ here, there }} do
            digest(data.arrays {{ x = at .. "squares.npy" }})
            local own = at == here
            digest(data.idx(at .. (own and "images.idx.gz" or "i.gz"), at .. (own and "labels.idx.gz" or "l.gz")))
            digest(data.tokens({{ at .. "tokens.bin", at .. "tokens.bin" }}, {{ length = 3 }}))
            local folder = own and at .. "pt/layers" or at .. "w"
            for _, ending in ipairs {{ ".safetensors", ".bin" }} do
              print(table.concat(orrery.load(folder .. ending)["0.weight"]:view(-1):tolist(), " "))
            end
            print "--"
          end""")
        self.assertEqual(done.code, 0, done.err)
        here, there, _ = done.out.split("--\n")
        self.assertEqual(sorted(here.splitlines()), sorted(there.splitlines()))
        self.assertGreater(len(here), 200)

    def test_copy_is_kept_while_the_server_says_the_same(self):
        self.server.answers = [give(TEXT)]
        self.assertEqual(self.text(), TEXT)
        first = self.copies()
        stamp = first[0].stat().st_mtime_ns
        self.assertEqual(self.text(), TEXT)
        self.assertEqual([path.name for path in first], ["text.txt"])
        self.assertEqual((self.copies(), first[0].stat().st_mtime_ns), (first, stamp))
        self.server.answers = [give(OTHER, '"2"')]
        self.assertEqual(self.text(), OTHER)
        self.assertEqual(first[0].read_bytes(), TEXT)  # of a run that still reads it

    def test_copy_that_was_cut_short_is_made_anew(self):
        self.server.answers = [give(TEXT)]
        self.text()
        self.copies()[0].write_bytes(TEXT[:1000])
        self.assertEqual(self.text(), TEXT)

    def test_states_that_the_server_does_not_tell_apart(self):
        self.server.answers = [give(TEXT, etag=None)]
        self.assertEqual(self.text(), TEXT)
        self.server.answers = [give(OTHER, etag=None)]  # of the same size
        self.assertEqual(self.text(), OTHER)
        self.server.answers = [give(OTHER, etag=None, modified="Sat, 28 Nov 2026 08:00:00 GMT")]
        self.assertEqual(self.text(), OTHER)

    def test_what_breaks_off_is_continued(self):
        date = "Sat, 28 Nov 2026 08:00:00 GMT"
        for state in ({}, {"etag": None, "modified": date}):
            with self.subTest(state):
                self.server.requests.clear()
                self.server.answers = [give(TEXT, until=until, **state) for until in (100_000, 200_000, None)]
                self.assertEqual(self.text(self.url(f"/{len(state)}")), TEXT)
                asked = [request.get("range") for request in self.server.requests]
                self.assertEqual(asked, [None, "bytes=100000-", "bytes=200000-"])

    def test_what_breaks_off_is_begun_anew_without_ranges(self):
        self.server.answers = [give(TEXT, until=100_000), give(TEXT, ranges=False)]
        self.assertEqual(self.text(), TEXT)
        self.server.answers = [give(TEXT, 'W/"1"', until=100_000), give(TEXT, 'W/"1"')]
        self.server.requests.clear()
        self.assertEqual(self.text(self.url("/weak")), TEXT)
        self.assertEqual([request.get("range") for request in self.server.requests], [None, None])

    def test_file_that_changes_while_it_is_copied(self):
        for careless in (False, True):
            with self.subTest(careless=careless):
                self.server.answers = [give(TEXT, until=100_000), give(OTHER, '"2"', careless=careless)]
                self.assertEqual(self.text(self.url(f"/{careless}")), OTHER)
        dates = [f"Sat, 28 Nov 2026 08:00:0{second} GMT" for second in (1, 2)]
        self.server.answers = [give(TEXT, None, until=100_000, modified=dates[0]),
                               give(OTHER, None, modified=dates[1], careless=True)]
        self.assertEqual(self.text(self.url("/dates")), OTHER)

    def test_faults_that_pass(self):
        self.server.answers = [say(503, Retry_After="1"), say(502), give(TEXT)]
        self.assertEqual(self.text(), TEXT)
        self.assertEqual(len(self.server.requests), 3)

    def test_faults_that_stay(self):
        self.refused("text.txt: the server says 404 Not Found; check the address", self.url())
        self.assertEqual(len(self.server.requests), 1)
        self.server.answers = [say(403)]
        url = self.url("/text.txt?key=geheim", at="me:geheim@127.0.0.1")
        self.assertNotIn("geheim", self.refused("text.txt: the server says 403 Forbidden", url=url))
        self.server.answers = [say(503)]
        self.server.requests.clear()
        self.refused("the server says 503 Service Unavailable (tried 5 times)", self.url())
        self.assertEqual(len(self.server.requests), 5)
        self.assertEqual(self.copies(), [])

    def test_no_server(self):
        port = self.server.server_port
        self.server.shutdown()
        self.server.server_close()
        self.refused(f"http://127.0.0.1:{port}/a/text.txt: Failed to connect", "(tried 5 times)")

    def test_lengths(self):
        self.server.answers = [give(TEXT, length=False, chunked=True)]
        self.assertEqual(self.text(), TEXT)
        self.server.answers = [give(TEXT, '"2"', length=False)]
        self.refused("text.txt: the server does not say how long it is")
        self.server.answers = [give(b"", '"3"')]
        self.refused("text.txt: the file is empty")

    def test_redirections(self):
        self.server.answers = [say(302, Location="/b/other.txt"), give(TEXT)]
        self.assertEqual(self.text(), TEXT)
        self.assertEqual(self.server.requests[1]["path"], "/b/other.txt")
        self.server.answers = [say(302, Location="file:///etc/hostname")]
        self.refused("text.txt: ", "file")

    def test_packed_files_stay_packed(self):
        packed = gzip.compress(b'a,b\n' + b'1,2\n' * 9)
        self.server.answers = [give(packed)]
        done = self.run_script(f"print(#data.csv('{self.url('/t.csv.gz')}', {{ x = 'a' }}))")
        self.assertEqual((done.code, done.out), (0, "9\n"), done.err)

    def test_ranks_copy_once(self):
        self.server.answers = [give(struct.pack("<256H", *range(256)))]
        done = self.run_script(f"print(#data.tokens('{self.url('/t.bin')}', {{ length = 4 }}))", "-n", "3")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(len(self.server.requests), 3)
        self.assertEqual(len(self.copies()), 1)

    def test_certificates(self):
        if not shutil.which("openssl"):
            self.skipTest("there is no openssl, which makes certificates")
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", key, "-out", certificate, "-days", "1", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.answers = [give(TEXT)]
        url = self.url(scheme="https", at="localhost")
        self.refused("SSL certificate problem", "CURL_CA_BUNDLE", url=url)
        self.assertEqual(self.text(url, CURL_CA_BUNDLE=str(certificate)), TEXT)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
