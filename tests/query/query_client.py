"""Queries over raw HTTP: one page, all pages, the plan."""

from harness import wire

FIVE_RANGES = 30000  # RU/s that need five of them
PAGES_MAX = 20_000
ACCESS = "x-orrery-query-access"
# The server merges ranges, where the client does not do so by the plan.
WHOLE = {"x-orrery-cross-partition-queries": "serve"}


class Refused(Exception):
    """The server's answer was not 200."""

    def __init__(self, response):
        super().__init__(f"{response.status}/{response.substatus} {response.body[:600].decode('utf-8', 'replace')}")
        self.response = response

    @property
    def is_bad_request(self):
        return self.response.status == 400


def body_of(text, parameters=()):
    """`parameters` are pairs of a name and a value."""
    body = {"query": text}
    if parameters:
        body["parameters"] = [{"name": name, "value": value} for name, value in parameters]
    return body


def options(page_size=-1, access=None, range_id=None, continuation=None):
    """Headers of one request."""
    headers = wire.QUERY | WHOLE
    headers[wire.MAX_ITEMS] = page_size
    if access is not None:
        headers[ACCESS] = access
    if range_id is not None:
        headers[wire.RANGE_ID] = range_id
    if continuation is not None:
        headers[wire.CONTINUATION] = continuation
    return headers


def query_page(container, body, headers):
    """The response of a page; what holds for every page of a query is checked."""
    response = container.client.post(container.docs, body, headers)
    if response.status != 200:
        raise Refused(response)
    rows = response.json["Documents"]
    assert response.json["_count"] == len(rows), f"_count {response.json['_count']} of {len(rows)} rows"
    assert response["x-ms-item-count"] == str(len(rows)), f"item count {response['x-ms-item-count']} of {len(rows)} rows"
    size = int(headers[wire.MAX_ITEMS])
    assert size < 1 or len(rows) <= size, f"{len(rows)} rows on a page of {size}"
    return response


def query_pages(container, body, **chosen):
    """The rows of each page, to the end."""
    headers = options(**chosen)
    for _ in range(PAGES_MAX):
        response = query_page(container, body, headers)
        yield response.json["Documents"]
        if response[wire.CONTINUATION] is None:
            return
        headers[wire.CONTINUATION] = response[wire.CONTINUATION]
    raise AssertionError(f"still not at the end after {PAGES_MAX} pages")


def query_all(container, body, **chosen):
    return [row for page in query_pages(container, body, **chosen) for row in page]
