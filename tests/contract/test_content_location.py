"""content-location: the URL of the request, on everything that succeeds."""
from harness import wire


def test_it_is_the_url_of_the_request(client, container, endpoint):
    created = container.create({"id": "x", "pk": "a"}).expect(201)
    assert created["content-location"] == f"{endpoint.scheme}://{endpoint.authority}{container.docs}"
    read = container.read("x").expect(200)
    assert read["content-location"] == f"{endpoint.scheme}://{endpoint.authority}{container.docs}/x"
    for path in ("/", "/dbs", container.path, container.path + "/pkranges", container.docs):
        assert client.get(path).expect(200)["content-location"] == f"{endpoint.scheme}://{endpoint.authority}{path}"
    deleted = client.delete(f"{container.docs}/x", {wire.KEY: '["a"]'}).expect(204)
    assert deleted["content-location"] == read["content-location"]


def test_it_keeps_scheme_and_host(server):
    own = server()
    for scheme in ("http", "https"):
        with wire.Client(own.endpoint.over(scheme)) as client:
            assert client.get("/dbs", {"Host": "localhost:99"})["content-location"] == f"{scheme}://localhost:99/dbs"


def test_it_is_below_the_advertised_url(server):
    for url in ("https://orrery.example:444/", "https://orrery.example:444"):
        client = server("--advertise", url).client()
        assert client.get("/dbs")["content-location"] == "https://orrery.example:444/dbs"


def test_refusals_have_none(client):
    assert client.get("/dbs/none").expect(404)["content-location"] is None
    assert client.get("/", signed=False).expect(401)["content-location"] is None
