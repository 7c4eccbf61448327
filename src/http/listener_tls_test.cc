// http and https on one port.
#include <gtest/gtest.h>

#include <string>

#include "http/test_client.h"
#include "http/test_server.h"
#include "http/test_tls_client.h"

namespace orrery::http {
namespace {

TEST(ListenerTls, ServesHttpAndHttpsOnOnePort) {
  TestServer server(secure());
  TestClient plain(server.port());
  TlsClient tls(server.port());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(plain.ask("GET /a HTTP/1.1\r\n\r\n").headers.at("x-secure"), "no");
    EXPECT_EQ(tls.ask("GET /a HTTP/1.1\r\n\r\n").headers.at("x-secure"), "yes");
  }
  EXPECT_EQ(tls.version(), "TLSv1.3");
  EXPECT_EQ(tls.protocol(), "http/1.1");
}

TEST(ListenerTls, SpeaksTls12) {
  TestServer server(secure());
  TlsClient client(server.port(), TLS1_2_VERSION, TLS1_2_VERSION);
  EXPECT_EQ(client.version(), "TLSv1.2");
  EXPECT_EQ(client.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
}

TEST(ListenerTls, CarriesLargeBodiesBothWays) {
  TestServer server(secure());
  TlsClient client(server.port());
  const std::string body(1'500'000, 'x');
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(client.ask("POST /l HTTP/1.1\r\ncontent-length: 1500000\r\n\r\n" + body).body ==
                "POST /l " + body);
    EXPECT_TRUE(client.ask("GET /big HTTP/1.1\r\n\r\n").body == std::string(4'000'000, 'b'));
  }
  EXPECT_EQ(client.ask("GET /a HTTP/1.1\r\nconnection: close\r\n\r\n").status, 200);
  EXPECT_TRUE(client.closed_silently());
}

TEST(ListenerTls, RefusesInTls) {
  TestServer server(secure());
  TlsClient client(server.port());
  client.send("POST / HTTP/1.1\r\ncontent-length: 3000000\r\n\r\n" + std::string(3'000'000, 'x'));
  EXPECT_EQ(client.read_answer().status, 413);
}

TEST(ListenerTls, RefusesOldVersionsByDefault) {
  TestServer server(secure());
  EXPECT_THROW(TlsClient(server.port(), TLS1_VERSION, TLS1_VERSION), std::runtime_error);
  EXPECT_THROW(TlsClient(server.port(), TLS1_VERSION, TLS1_1_VERSION), std::runtime_error);
  EXPECT_TRUE(eventually([&] { return server.stats().tls_handshakes_failed == 2; }));
}

TEST(ListenerTls, ServesOldClientsWhenToldTo) {
  TestServer server(secure(true));
  TlsClient old(server.port(), TLS1_VERSION, TLS1_VERSION);
  EXPECT_EQ(old.version(), "TLSv1");
  EXPECT_EQ(old.ask("GET /a HTTP/1.1\r\n\r\n").headers.at("x-secure"), "yes");
  TlsClient current(server.port(), TLS1_VERSION, TLS1_3_VERSION);
  EXPECT_EQ(current.version(), "TLSv1.3");
  EXPECT_EQ(current.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
}

TEST(ListenerTls, ClosesASilentHandshake) {
  TestServer server(secure(false, {.request_time_max = std::chrono::milliseconds(60)}));
  TestClient client(server.port());
  client.send("\x16\x03\x01");
  EXPECT_TRUE(client.closed_silently());
}

TEST(ListenerTls, SurvivesGarbageInsteadOfAHandshake) {
  TestServer server(secure());
  TestClient client(server.port());
  client.send(std::string_view("\x16\x03\x01\x00\x05hello", 10));
  EXPECT_TRUE(eventually([&] { return server.stats().tls_handshakes_failed == 1; }));
  EXPECT_EQ(TlsClient(server.port()).ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
}

TEST(ListenerTls, TurnsAwayInHttpOnly) {
  Limits limits;
  limits.connections_max = 1;
  TestServer server(secure(false, limits));
  TlsClient first(server.port());
  EXPECT_EQ(first.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_EQ(TestClient(server.port()).ask("GET /a HTTP/1.1\r\n\r\n").status, 503);
  EXPECT_THROW(TlsClient(server.port()), std::runtime_error);
}

TEST(ListenerTls, RefusesABadCertificate) {
  auto options = secure();
  options.tls_key_pem = "nonsense";
  EXPECT_THROW(TestServer(std::move(options)), std::runtime_error);
}

}  // namespace
}  // namespace orrery::http
