"""A small HTTP client that speaks the wire protocol and hides nothing of it.

Requests are built byte by byte over a socket, so that a test decides on the spelling of a path, on each
header and on what is signed; responses keep header names as they came. There is one client with two manners:

    wire.Client(endpoint)     notes every breach of the rules that hold for all responses (`Client.breaches`), which
                              the `client` fixture asserts to be none at the end of each test, and sends a request
                              again whose kept-alive connection the server has closed
    wire.connect(port)        for judges of outcomes: sends each request once, checks nothing. Without an answer it
                              raises NoAnswer, which says whether the request may have been executed

Both sign by themselves unless told otherwise. `Connection` is the socket below, for requests that come in pieces.
"""
import base64
import email.utils
import functools
import hmac
import json
import re
import select
import socket
import ssl
import time
import urllib.parse
import uuid

from . import retries

WELL_KNOWN_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
NEWEST = "2020-07-15"  # what JS4, P4 and NET send
OLDEST = "2017-11-15"  # what DD sends
GUID = re.compile(r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
ANSWER_SECONDS_MAX = 30.0

KEY = "x-ms-documentdb-partitionkey"
RANGE_ID = "x-ms-documentdb-partitionkeyrangeid"
SESSION = "x-ms-session-token"
CONTINUATION = "x-ms-continuation"
MAX_ITEMS = "x-ms-max-item-count"
UPSERT = {"x-ms-documentdb-is-upsert": "true"}
INCREMENTAL = {"A-IM": "Incremental Feed"}
USUAL_HEADERS = {"host", "x-ms-version", "x-ms-date", "authorization", "content-type", "content-length"}
QUERY = {"content-type": "application/query+json", "x-ms-documentdb-isquery": "true",
         "x-ms-documentdb-query-enablecrosspartition": "true"}


# ── Values ──────────────────────────────────────────────────────────────────────────────────────────

def unique(prefix="contract"):
    return f"{prefix}-{uuid.uuid4().hex[:16]}"


def quote(name):
    """One path segment, everything but unreserved characters escaped, as careful SDKs do."""
    return urllib.parse.quote(name, safe="")


def to_bytes(body):
    """Bytes and text go as they are; everything else becomes compact JSON in UTF-8."""
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def http_date(offset_seconds=0):
    return date_of_second(int(time.time() + offset_seconds))


# Those who sign thousands of requests a second would spend much of it on the two.
@functools.lru_cache(maxsize=64)
def date_of_second(second):
    return email.utils.formatdate(second, usegmt=True)


@functools.lru_cache(maxsize=64)
def key_bytes(key):
    return base64.b64decode(key)


def sign(key, verb, resource_type, link, x_ms_date, date_line=""):
    text = f"{verb.lower()}\n{resource_type.lower()}\n{link}\n{x_ms_date.lower()}\n{date_line.lower()}\n"
    return base64.b64encode(hmac.digest(key_bytes(key), text.encode(), "sha256")).decode()


def authorization(signature):
    return urllib.parse.quote(f"type=master&ver=1.0&sig={signature}", safe="")


def unversioned(token):
    """A session token with -1 as its version, which otherwise names the container and the life of the store."""
    return re.sub(r":\d+#", ":-1#", token)


def metric(client, name):
    """One number of /_metrics."""
    text = client.get("/_metrics", signed=False).expect(200).body.decode()
    return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)[1])


def rid_bytes(rid):
    return base64.b64decode(rid.replace("-", "/"), validate=True)


def rid_text(data):
    return base64.b64encode(data).decode().replace("/", "-")


def is_rid_link(segments):
    if len(segments) < 2 or segments[0] != "dbs" or len(segments[1]) != 8:
        return False
    try:
        return len(rid_bytes(segments[1])) == 4
    except ValueError:
        return False


def what_to_sign(target):
    """Resource type and link of a request target, as the official clients choose them."""
    path, _, query = target.partition("?")
    segments = [urllib.parse.unquote(part) for part in path.split("/") if part]
    if segments[-2:-1] == ["operations"]:
        segments = segments[:-2]  # partitionkeydelete is signed as its container
    if not segments:
        return "", ""
    if segments[0] == "_orrery":
        return "orrery", "/".join(segments)
    is_feed = len(segments) % 2 == 1
    resource_type = segments[-1] if is_feed else segments[-2]
    parts = segments[:-1] if is_feed else segments
    if resource_type == "docs" and not is_feed and query:
        parts = parts[:-1] + [f"{parts[-1]}?{query}"]
    if is_rid_link(segments):
        return resource_type, parts[-1].lower()
    if resource_type == "offers":
        return resource_type, "" if is_feed else parts[-1].lower()
    if resource_type == "media" and not is_feed:
        return resource_type, rid_text(rid_bytes(parts[-1])[:20]).lower()
    return resource_type, "/".join(parts)


# ── Responses ───────────────────────────────────────────────────────────────────────────────────────

class Response:
    def __init__(self, status, headers, body, verb="GET"):
        self.status, self.headers, self.body, self.verb = status, headers, body, verb

    def __getitem__(self, name):
        """The header of that name, None when absent."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def __repr__(self):
        lines = "".join(f"\n  {name}: {value}" for name, value in self.headers)
        return f"HTTP {self.status}{lines}\n\n{self.body[:2000]!r}"

    def __str__(self):
        return f"{self.status} {self.body[:300].decode('utf-8', 'replace')}"

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self):
        return self.json["message"]

    @property
    def substatus(self):
        return int(self["x-ms-substatus"] or 0)

    @property
    def charge(self):
        return float(self["x-ms-request-charge"])

    def expect(self, status, substatus=None, text=None):
        """Asserts the status (or one of several) and, where given, the sub-status and a part of the message."""
        wanted = status if isinstance(status, tuple) else (status,)
        assert self.status in wanted, f"expected {status}, got {self!r}"
        if substatus is not None:
            assert self.substatus == substatus, f"expected sub-status {substatus}, got {self!r}"
        if text is not None:
            assert text.lower() in self.message.lower(), f"expected {text!r} in the message of {self!r}"
        return self

    def breaches(self):
        """Which of the rules for all responses this one breaks (0, 1.5, 11)."""
        for name, value in self.headers:
            if name != name.lower():
                yield f"header name {name} is not in lower case"
            if name.lower() == CONTINUATION and not value:
                yield "empty x-ms-continuation"
        names = [name.lower() for name, _ in self.headers]
        if len(names) != len(set(names)):
            yield f"a header twice: {sorted(name for name in set(names) if names.count(name) > 1)}"
        if self["content-encoding"]:
            yield f"content-encoding {self['content-encoding']}"
        if self["transfer-encoding"]:
            yield "a chunked response"
        if not GUID.match(self["x-ms-activity-id"] or ""):
            yield f"x-ms-activity-id {self['x-ms-activity-id']!r} is no GUID"
        if not re.match(r"^\d+(\.\d{1,2})?$", self["x-ms-request-charge"] or "") or self.charge <= 0:
            yield f"x-ms-request-charge {self['x-ms-request-charge']!r} is not a decimal above 0"
        if self.status in (204, 304):
            if self.body or self["content-type"] or self["content-length"]:
                yield f"{self.status} with a body, content-type or content-length"
        elif self["content-length"] is None:
            yield "no content-length"
        if self.status == 403 and self.substatus in (3, 1008):
            yield f"403/{self.substatus} sends clients to another region"
        if self.status in (429, 503) and not re.match(r"^[1-9]\d*$", self["x-ms-retry-after-ms"] or ""):
            yield f"{self.status} without x-ms-retry-after-ms"
        if self.status == 500:
            yield f"an internal error: {self!r}"
        if self.status >= 400 and self.verb != "HEAD":
            yield from self.error_breaches()

    def error_breaches(self):
        if not (self["content-type"] or "").startswith("application/json"):
            yield f"{self.status} with content-type {self['content-type']!r}"
        try:
            body = self.json
            has_code = body["code"] == 4001 if self.substatus == 4001 else isinstance(body["code"], str)
            if not (isinstance(body["message"], str) and body["message"] and has_code):
                yield f"{self.status} whose code or message is no text: {body}"
        except (ValueError, KeyError, TypeError):
            yield f"{self.status} whose body is no error object: {self.body[:200]!r}"


# ── Connections ─────────────────────────────────────────────────────────────────────────────────────

class Closed(ConnectionError):
    """The server closed the connection where a response was expected."""


class NoAnswer(Exception):
    """The connection ended before the answer was there. The request may have been executed or not, unless `sent` is
    false: then it was not. `is_closed`: by the server, and not given up by the client."""

    def __init__(self, error, sent):
        super().__init__(f"{type(error).__name__}: {error} ({'sent' if sent else 'not sent'})")
        self.sent = sent
        self.is_closed = isinstance(error, (Closed, BrokenPipeError, ConnectionResetError))


class Endpoint:
    def __init__(self, url, key=WELL_KNOWN_KEY):
        parts = urllib.parse.urlsplit(url)
        self.scheme, self.host, self.key = parts.scheme, parts.hostname, key
        self.port = parts.port or (443 if self.scheme == "https" else 80)

    @property
    def authority(self):
        return f"{self.host}:{self.port}"

    @property
    def url(self):
        return f"{self.scheme}://{self.authority}/"

    def over(self, scheme):
        return Endpoint(f"{scheme}://{self.authority}/", self.key)


class Connection:
    """One socket. What is sent is up to the caller."""

    def __init__(self, endpoint, tls=None, timeout=ANSWER_SECONDS_MAX):
        self.socket = socket.create_connection((endpoint.host, endpoint.port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_tls = endpoint.scheme == "https"
        if self.is_tls:
            self.socket = (tls or any_certificate()).wrap_socket(self.socket, server_hostname=endpoint.host)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_until_answered(self, data, piece_bytes=16 * 1024):
        """Sends piece by piece and stops when the server has begun to answer or has closed."""
        for start in range(0, len(data), piece_bytes):
            if not self.is_tls and select.select([self.socket], [], [], 0)[0]:  # TLS has messages of its own to read
                return
            try:
                self.send(data[start:start + piece_bytes])
            except (BrokenPipeError, ConnectionResetError):
                return

    def fill(self):
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(f"closed after {self.buffer[:200]!r}")
        self.buffer += data

    def receive(self, verb="GET"):
        """The next response, an interim one (100 Continue) included."""
        while b"\r\n\r\n" not in self.buffer:
            self.fill()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")
        assert re.match(r"^HTTP/1\.1 \d{3} \S", status_line), status_line
        status = int(status_line[9:12])
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        response = Response(status, headers, b"", verb)
        if verb != "HEAD" and status >= 200 and status not in (204, 304):
            assert response["content-length"] is not None, f"no content-length: {response!r}"
            response.body = self.take(int(response["content-length"]))
        return response

    def take(self, length):
        """The next bytes, so many. Large bodies are put together once."""
        pieces, have = [], 0
        while have + len(self.buffer) < length:
            have += len(self.buffer)
            pieces.append(self.buffer)
            self.buffer = b""
            self.fill()
        pieces.append(self.buffer[:length - have])
        self.buffer = self.buffer[length - have:]
        return b"".join(pieces)

    def is_stale(self):
        """Whether the server has closed the connection while it was idle, as far as one can know."""
        poll = select.poll()  # unlike select() it knows sockets beyond number 1023
        poll.register(self.socket, select.POLLIN)
        if not poll.poll(0):
            return False
        timeout = self.socket.gettimeout()
        self.socket.setblocking(False)  # TLS has messages of its own, after which there is nothing to read
        try:
            self.fill()
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError:
            return True
        finally:
            self.socket.settimeout(timeout)
        return False

    def is_closed_by_server(self):
        """Waits for the end of the stream; False when the server says anything more instead."""
        try:
            self.fill()
        except Closed:
            return True
        return False


def any_certificate(minimum=None, maximum=None, ciphers=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if ciphers:
        context.set_ciphers(ciphers)
    if minimum:
        context.minimum_version = minimum
    if maximum:
        context.maximum_version = maximum
    return context


# ── The client ──────────────────────────────────────────────────────────────────────────────────────

def connect(port, key=WELL_KNOWN_KEY, **settings):
    """A client of the server on this port of loopback that sends each request once and notes no breaches."""
    return Client(Endpoint(f"http://127.0.0.1:{port}/", key), notes_breaches=False, resends=False, **settings)


class Client:
    """Signs and sends requests over one kept-alive connection, and deletes the databases it made. Not thread-safe.

    notes_breaches   of the rules for all responses, in `breaches`
    resends          a request that found its kept-alive connection closed by the server
    seconds_max      for each answer
    """

    def __init__(self, endpoint, version=NEWEST, *, notes_breaches=True, resends=True, seconds_max=ANSWER_SECONDS_MAX):
        self.endpoint, self.version = endpoint, version
        self.notes_breaches, self.resends, self.seconds_max = notes_breaches, resends, seconds_max
        self.connection, self.breaches, self.databases = None, [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for path in self.databases:
            self.request("DELETE", path)
        self.close()

    def close(self):
        """The next request opens another connection."""
        if self.connection:
            self.connection.close()
        self.connection = None

    def build(self, verb, target, body=None, headers=None, *, signed=True, what=None, key=None, date=None,
              version=None):
        """The bytes of a request. `what` is the pair (type, link) to sign; a header of None leaves a usual
        header out."""
        body = to_bytes(body)
        date = date or http_date()
        fields = {"Host": self.endpoint.authority, "x-ms-version": version or self.version, "x-ms-date": date}
        if signed:
            resource_type, link = what or what_to_sign(target)
            fields["authorization"] = authorization(
                sign(key or self.endpoint.key, verb, resource_type, link, date))
        if body:
            fields["content-type"] = "application/json"
        if body or verb in ("POST", "PUT", "PATCH"):
            fields["content-length"] = len(body)
        for name, value in (headers or {}).items():
            if name.lower() in USUAL_HEADERS:
                fields = {known: old for known, old in fields.items() if known.lower() != name.lower()}
            if value is not None:
                fields[name] = value
        head = f"{verb} {target} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in fields.items())
        return head.encode() + b"\r\n" + body

    def request(self, verb, target, body=None, headers=None, **options):
        response = self.exchange(self.build(verb, target, body, headers, **options), verb)
        if self.notes_breaches and not target.startswith("/_"):
            self.breaches += [f"{verb} {target}: {breach}" for breach in response.breaches()]
        return response

    def exchange(self, data, verb="GET"):
        """Sends the bytes of a request; its answer, or NoAnswer."""
        if self.connection is not None and self.connection.is_stale():
            self.close()
        is_reused = self.connection is not None
        try:
            return self.exchange_once(data, verb)
        except NoAnswer as failure:
            if not (self.resends and is_reused and failure.is_closed):
                raise
            # The server has closed the idle connection while the request was on its way.
            retries.report(f"{verb} over a kept-alive connection", failure)
            return self.exchange_once(data, verb)

    def exchange_once(self, data, verb):
        sent = False
        try:
            if self.connection is None:
                self.connection = Connection(self.endpoint, timeout=self.seconds_max)
            sent = True
            self.connection.send(data)
            response = self.connection.receive(verb)
        except (OSError, ValueError) as error:
            self.close()
            raise NoAnswer(error, sent) from error
        if response["connection"] == "close":
            self.close()
        return response

    def get(self, target, headers=None, **options):
        return self.request("GET", target, None, headers, **options)

    def post(self, target, body=None, headers=None, **options):
        return self.request("POST", target, body, headers, **options)

    def put(self, target, body=None, headers=None, **options):
        return self.request("PUT", target, body, headers, **options)

    def delete(self, target, headers=None, **options):
        return self.request("DELETE", target, None, headers, **options)

    def pages(self, target, headers=None, pages_max=1000):
        """Follows continuations to the end."""
        headers = dict(headers or {})
        for _ in range(pages_max):
            page = self.get(target, headers).expect(200)
            yield page
            if page[CONTINUATION] is None:
                return
            headers[CONTINUATION] = page[CONTINUATION]
        raise AssertionError(f"{target}: still not at the end after {pages_max} pages")

    def all_of(self, target, member, headers=None):
        """Every resource of a feed, and the pages' responses. A page that is not a 200 ends it; it is then the last of
        the responses."""
        resources, pages, headers = [], [], {MAX_ITEMS: -1} | (headers or {})
        while True:
            pages.append(self.get(target, headers))
            if pages[-1].status != 200:
                return resources, pages
            resources += pages[-1].json[member]
            if pages[-1][CONTINUATION] is None:
                return resources, pages
            headers[CONTINUATION] = pages[-1][CONTINUATION]

    def create_database(self, name=None, headers=None, **options):
        response = self.post("/dbs", {"id": name or unique()}, headers, **options).expect(201)
        database = Database(self, response)
        self.databases.append(database.path)
        return database

    def offers_of(self, resource):
        """The offers of a database or container, looked up as Python's SDKs do."""
        query = {"query": "SELECT * FROM root r WHERE r.resource=@link",
                 "parameters": [{"name": "@link", "value": resource.body["_self"]}]}
        return self.post("/offers", query, QUERY).expect(200).json["Offers"]


class Resource:
    def __init__(self, client, response):
        self.client, self.response, self.body = client, response, response.json
        self.id, self.rid = self.body["id"], self.body["_rid"]
        self.self_path = "/" + self.body["_self"]


class Database(Resource):
    @property
    def path(self):
        return f"/dbs/{quote(self.id)}"

    def post_container(self, body=None, headers=None, **options):
        """POST …/colls; `body` is laid over a plain definition with the key /pk and version 2."""
        plain = {"id": unique("c"), "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        members = {name: value for name, value in (plain | (body or {})).items() if value is not ABSENT}
        return self.client.post(f"{self.path}/colls", members, headers, **options)

    def create_container(self, body=None, headers=None, *, throughput=None, **options):
        headers = dict(headers or {})
        if throughput:
            headers["x-ms-offer-throughput"] = throughput
        return Container(self.client, self.post_container(body, headers, **options).expect(201), self)


ABSENT = object()  # a member of the plain container definition to leave out
FROM_BODY = object()  # the key header is taken from the document's /pk


def key_header(key):
    """A list becomes the header, text is sent as it is, None sends none."""
    if key is None:
        return {}
    return {KEY: key if isinstance(key, str) else json.dumps(key)}


def of_key(*components):
    """The header of a key with these components."""
    return {KEY: json.dumps(components)}


class Container(Resource):
    def __init__(self, client, response, database):
        super().__init__(client, response)
        self.database = database

    @property
    def path(self):
        return f"{self.database.path}/colls/{quote(self.id)}"

    @property
    def docs(self):
        return f"{self.path}/docs"

    def doc(self, name):
        return f"{self.docs}/{quote(name)}"

    def create(self, document, key=FROM_BODY, headers=None, **options):
        if key is FROM_BODY:
            key = [document.get("pk", {})] if isinstance(document, dict) else ["a"]
        return self.client.post(self.docs, document, key_header(key) | (headers or {}), **options)

    def upsert(self, document, key=FROM_BODY, headers=None, **options):
        return self.create(document, key, UPSERT | (headers or {}), **options)

    def read(self, name, key=("a",), headers=None, **options):
        return self.client.get(self.doc(name), key_header(key) | (headers or {}), **options)

    def replace(self, name, document, key=("a",), headers=None, **options):
        return self.client.put(self.doc(name), document, key_header(key) | (headers or {}), **options)

    def delete(self, name, key=("a",), headers=None, **options):
        return self.client.delete(self.doc(name), key_header(key) | (headers or {}), **options)

    def feed(self, headers=None, **options):
        return self.client.get(self.docs, headers, **options)

    def all_documents(self, headers=None):
        return [document for page in self.client.pages(self.docs, headers) for document in page.json["Documents"]]

    def ranges(self):
        return self.client.get(f"{self.path}/pkranges").expect(200).json["PartitionKeyRanges"]

    def fill(self, count, key="a"):
        """Creates documents "0", "1", … in that order."""
        return [self.create({"id": str(n), "pk": key, "n": n}).expect(201).json for n in range(count)]

    def delete_key(self, key, headers=None, **options):
        return self.client.post(f"{self.path}/operations/partitionkeydelete", None,
                                key_header(key) | (headers or {}), **options)
