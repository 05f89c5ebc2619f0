"""Small object stores in memory that speak to pyarrow as Google's and Azure's do."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_WRITTEN, _MOMENT = "2026-01-01T00:00:00.000Z", 1_767_225_600


class _Asked(BaseHTTPRequestHandler):
    """What both have in common; a server has one bucket."""

    protocol_version = "HTTP/1.1"
    #: The contents of objects by their names, without that of the bucket; and what is being sent.
    objects: ClassVar[dict[str, bytes]] = {}
    pending: ClassVar[dict[str, bytes]] = {}

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def answer_all(self) -> None:
        split = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(split.query, True).items()}
        self.answer(self.command, split.path, query, self.body())

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer_all  # noqa: N815

    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> None:
        raise NotImplementedError

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = b""
        while size := int(self.rfile.readline(), 16):
            pieces += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return pieces

    def reply(self, status: int, content: bytes = b"", /, **headers: str) -> None:
        self.send_response(status)
        length = headers.pop("Content_Length", str(len(content)))
        for name, value in (*headers.items(), ("Content-Length", length)):
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def reply_part(self, content: bytes, asked: str | None, **headers: str) -> None:
        found = re.match(r"bytes=(\d+)-(\d*)", asked or "")
        if found is None:
            return self.reply(200, content, **headers)
        first, last = int(found[1]), int(found[2] or len(content))
        part = content[first : last + 1]
        span = f"bytes {first}-{first + len(part) - 1}/{len(content)}"
        return self.reply(206, part, Content_Range=span, **headers)

    def listed(self, prefix: str, delimiter: str) -> tuple[list[str], list[str]]:
        """The objects that begin so, and the folders instead of what is in them."""
        names: list[str] = []
        folders: set[str] = set()
        for name in sorted(n for n in self.objects if n.startswith(prefix)):
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
            else:
                names.append(name)
        return names, sorted(folders)


class _Google(_Asked):
    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> None:
        found = re.fullmatch(r"/(?:upload/)?storage/v1/b/([^/]+)(?:/o(?:/(.*))?)?", path)
        if found is None or found[1] != "data":
            return self.missing()
        name = None if found[2] is None else unquote(found[2])
        if "upload_id" in query:
            return self.uploaded(query["upload_id"], body)
        if method == "POST" and "/rewriteTo/" in path:
            source, _, target = path.rpartition("/o/")[0].partition("/rewriteTo/")
            return self.missing() if not target else self.rewritten(source, path)
        if method == "POST":
            return self.begun(query, body)
        if name is None:
            return self.told({"kind": "storage#bucket", "name": "data", "id": "data"}
                             if not path.endswith("/o") else self.listing(query))  # fmt: skip
        if name not in self.objects:
            return self.missing()
        if method == "DELETE":
            del self.objects[name]
            return self.reply(204)
        if query.get("alt") == "media":
            return self.reply_part(self.objects[name], self.headers.get("Range"))
        return self.told(self.metadata(name))

    def told(self, answer: dict[str, Any]) -> None:
        self.reply(200, json.dumps(answer).encode(), Content_Type="application/json")

    def missing(self) -> None:
        error = {"error": {"code": 404, "message": "Not Found"}}
        self.reply(404, json.dumps(error).encode(), Content_Type="application/json")

    def rewritten(self, source: str, path: str) -> None:
        one = unquote(source.partition("/o/")[2])
        other = unquote(path.rpartition("/o/")[2])
        self.objects[other] = self.objects[one]
        self.told({"kind": "storage#rewriteResponse", "done": True,
                   "resource": self.metadata(other)})  # fmt: skip

    def metadata(self, name: str) -> dict[str, Any]:
        content = self.objects[name]
        md5 = hashlib.md5(content, usedforsecurity=False).digest()
        return {"kind": "storage#object", "bucket": "data", "name": name, "id": f"data/{name}",
                "size": str(len(content)), "updated": _WRITTEN, "timeCreated": _WRITTEN,
                "generation": str(int.from_bytes(md5[:6], "big")), "metageneration": "1",
                "md5Hash": base64.b64encode(md5).decode(), "etag": "e"}  # fmt: skip

    def listing(self, query: dict[str, str]) -> dict[str, Any]:
        names, folders = self.listed(query.get("prefix", ""), query.get("delimiter", ""))
        return {"kind": "storage#objects", "items": [self.metadata(n) for n in names],
                "prefixes": folders}  # fmt: skip

    def begun(self, query: dict[str, str], body: bytes) -> None:
        if query["uploadType"] == "resumable":
            name = query.get("name") or json.loads(body)["name"]
            self.pending[name] = b""
            at = f"http://{self.headers['Host']}/upload/storage/v1/b/data/o?upload_id={name}"
            return self.reply(200, Location=at)
        if query["uploadType"] == "media":
            self.objects[query["name"]] = body
            return self.told(self.metadata(query["name"]))
        mark = self.headers["Content-Type"].partition("boundary=")[2].strip('"').encode()
        _, described, content, _ = body.split(b"--" + mark)
        name = query.get("name") or json.loads(described.partition(b"\r\n\r\n")[2])["name"]
        self.objects[name] = content.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        return self.told(self.metadata(name))

    def uploaded(self, name: str, body: bytes) -> None:
        self.pending[name] += body
        if self.headers.get("Content-Range", "").endswith("/*"):
            return self.reply(308, Range=f"bytes=0-{len(self.pending[name]) - 1}")
        self.objects[name] = self.pending.pop(name)
        return self.told(self.metadata(name))


class _Azure(_Asked):
    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> None:
        _, _, bucket, *rest = unquote(path).split("/", 3)  # the first is the account
        name = rest[0] if rest else ""
        if bucket != "data":
            return self.failed(404, "ContainerNotFound")
        if query.get("action") == "getAccessControl":
            return self.failed(400, "InvalidQueryParameterValue")  # there are no real folders
        if query.get("comp") == "list":
            return self.listing(query)
        if not name:
            return self.reply(200, b"", **self.headers_of(b""))
        if method == "PUT":
            return self.put(name, query, body)
        if name not in self.objects:
            return self.failed(404, "BlobNotFound")
        content = self.objects[name]
        if method == "DELETE":
            del self.objects[name]
            return self.reply(202)
        headers = self.headers_of(content)
        if method == "HEAD":
            return self.reply(200, b"", Content_Length=str(len(content)), **headers)
        return self.reply_part(content, self.headers.get("x-ms-range"), **headers)

    def headers_of(self, content: bytes) -> dict[str, str]:
        tag = hashlib.md5(content, usedforsecurity=False).hexdigest()
        now = formatdate(_MOMENT, usegmt=True)
        return {"ETag": f'"{tag}"', "Last-Modified": now, "x-ms-creation-time": now,
                "x-ms-blob-type": "BlockBlob", "x-ms-lease-state": "available",
                "x-ms-lease-status": "unlocked", "x-ms-version": "2023-11-03",
                "x-ms-has-immutability-policy": "false", "x-ms-has-legal-hold": "false",
                "x-ms-request-server-encrypted": "true", "x-ms-server-encrypted": "true",
                }  # fmt: skip

    def failed(self, status: int, code: str) -> None:
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
        content = b"" if self.command == "HEAD" else text.encode()
        headers = {"Content-Type": "application/xml"} if content else {}
        self.reply(status, content, **{"x-ms-error-code": code, **headers})

    def put(self, name: str, query: dict[str, str], body: bytes) -> None:
        if query.get("comp") == "lease":
            status = 201 if self.headers["x-ms-lease-action"] == "acquire" else 200
            return self.reply(status, b"", **{"x-ms-lease-id": "0", **self.headers_of(b"")})
        if query.get("comp") == "block":
            self.pending[query["blockid"]] = body
        elif query.get("comp") == "blocklist":
            blocks = re.findall(r"<(?:Latest|Uncommitted|Committed)>(.*?)<", body.decode())
            self.objects[name] = b"".join(self.pending[block] for block in blocks)
        elif source := self.headers.get("x-ms-copy-source"):
            self.objects[name] = self.objects[unquote(urlsplit(source).path).split("/", 3)[3]]
            return self.reply(202, b"", **self.headers_of(b""), **{"x-ms-copy-status": "success"})
        else:
            self.objects[name] = body
        return self.reply(201, b"", **self.headers_of(body))

    def listing(self, query: dict[str, str]) -> None:
        names, folders = self.listed(query.get("prefix", ""), query.get("delimiter", ""))
        when = formatdate(_MOMENT, usegmt=True)
        text = "".join(
            f"<Blob><Name>{escape(n)}</Name><Properties><Creation-Time>{when}</Creation-Time>"
            f"<Last-Modified>{when}</Last-Modified><Etag>e</Etag>"
            f"<Content-Length>{len(self.objects[n])}</Content-Length>"
            "<BlobType>BlockBlob</BlobType></Properties></Blob>"
            for n in names
        ) + "".join(f"<BlobPrefix><Name>{escape(n)}</Name></BlobPrefix>" for n in folders)
        text = ("<?xml version='1.0'?><EnumerationResults ContainerName='data'>"
                f"<Blobs>{text}</Blobs><NextMarker/></EnumerationResults>")  # fmt: skip
        self.reply(200, text.encode(), Content_Type="application/xml")


@contextmanager
def serving(scheme: str) -> Iterator[str]:
    """The address of a store with an empty bucket `data`.

    It is another process: some calls of pyarrow's let no other thread run until they are answered.
    """
    command = [sys.executable, __file__, scheme]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def main(scheme: str) -> None:
    handler = {"gs": _Google, "az": _Azure}[scheme]
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
