// For tests: a TestClient that speaks TLS, and a server that does.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <csignal>
#include <stdexcept>
#include <string>

#include "http/certificate.h"
#include "http/test_client.h"
#include "http/test_server.h"

namespace orrery::http {

/// Speaks TLS between `version_min` and `version_max`; throws when the server does not want that.
class TlsClient : public TestClient {
 public:
  explicit TlsClient(std::uint16_t port, int version_min = TLS1_2_VERSION,
                     int version_max = TLS1_3_VERSION)
      : TestClient(port), context_(SSL_CTX_new(TLS_client_method())) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's sockets raise it
    SSL_CTX_set_min_proto_version(context_, version_min);
    SSL_CTX_set_max_proto_version(context_, version_max);
    SSL_CTX_set_cipher_list(context_, "DEFAULT@SECLEVEL=0");
    static constexpr unsigned char kOffer[] = "\x02h2\x08http/1.1";
    SSL_CTX_set_alpn_protos(context_, kOffer, sizeof kOffer - 1);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, fd());
    if (SSL_connect(ssl_) != 1) {
      free();
      throw std::runtime_error("the server refused the handshake");
    }
  }
  ~TlsClient() override { free(); }

  bool send(std::string_view text) override {
    return SSL_write(ssl_, text.data(), static_cast<int>(text.size())) > 0;
  }
  std::string version() const { return SSL_get_version(ssl_); }
  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &name, &size);
    return std::string(name, name + size);
  }

 protected:
  ssize_t receive(char* data, std::size_t size) override {
    if (SSL_pending(ssl_) == 0) wait_for(POLLIN);
    return SSL_read(ssl_, data, static_cast<int>(size));
  }

 private:
  void free() {
    ERR_clear_error();
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }

  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
};

inline ListenerOptions secure(bool legacy = false, Limits limits = {}) {
  static const auto made = make_self_signed_certificate({}, SystemClock().unix_seconds()).value();
  return {.limits = limits,
          .tls_certificate_pem = made.certificate_pem,
          .tls_key_pem = made.key_pem,
          .legacy_tls = legacy};
}

}  // namespace orrery::http
