#include "http/tls.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/assert.h"

namespace orrery::http {
namespace {

// OpenSSL takes records out of this piece by piece, so it need not hold a whole one.
constexpr std::size_t kInputBytes = 8 * 1024;

// ── The BIO: OpenSSL's view of a TlsSession ──

TlsSession& session_of(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }

int bio_write(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
  session_of(bio).output().append(data, size);
  *written = size;
  return 1;
}

int bio_read(BIO* bio, char* data, std::size_t size, std::size_t* read) {
  BIO_clear_retry_flags(bio);
  auto& session = session_of(bio);
  const auto input = session.pending_input();
  *read = std::min(size, input.size());
  if (*read == 0) {
    BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(data, input.data(), *read);
  session.consume_input(*read);
  return 1;
}

long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* bio_method() {
  static const BIO_METHOD* method = [] {
    auto* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "orrery tls session");
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_write_ex(made, bio_write);
    BIO_meth_set_read_ex(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

// ── The context ──

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using SessionBioPtr = std::unique_ptr<BIO, FreeBio>;

SessionBioPtr bio_over(std::string_view text) {
  return SessionBioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Error tls_error(std::string_view what) {
  const auto code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return Error(ErrorCode::BadRequest,
               reason != nullptr ? fmt::format("{}: {}", what, reason) : std::string(what));
}

Result<> use_certificate_chain(SSL_CTX* context, std::string_view pem) {
  const auto bio = bio_over(pem);
  bool first = true;
  while (true) {
    std::unique_ptr<X509, FreeCertificate> certificate(
        PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (!certificate) break;
    if (first) {
      if (SSL_CTX_use_certificate(context, certificate.get()) != 1) {
        return tls_error("the TLS certificate cannot be used");
      }
      first = false;
    } else {
      if (SSL_CTX_add0_chain_cert(context, certificate.get()) != 1) {
        return tls_error("the TLS certificate chain cannot be used");
      }
      certificate.release();
    }
  }
  if (first) return tls_error("the TLS certificate is not a PEM certificate");
  ERR_clear_error();
  return {};
}

Result<> use_key(SSL_CTX* context, std::string_view pem) {
  const auto bio = bio_over(pem);
  // Without a callback OpenSSL would ask for the passphrase on the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  std::unique_ptr<EVP_PKEY, FreeKey> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) return tls_error("the TLS key is not a PEM private key without passphrase");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return tls_error("the TLS key does not belong to the certificate");
  }
  return {};
}

// .NET and curl offer h2 as well; saying which one we speak saves them from guessing.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(&selected, chosen_size, kHttp11, sizeof kHttp11 - 1, offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *chosen = selected;
  return SSL_TLSEXT_ERR_OK;
}

// Loosens the rules for this one connection when its client cannot do better. A client that speaks
// TLS 1.2 or 1.3 says at least 1.2 here, so nobody can talk it down to the old rules.
int allow_old_client(SSL* ssl, int*, void*) {
  if (SSL_client_hello_get0_legacy_version(ssl) < TLS1_2_VERSION) {
    SSL_set_security_level(ssl, 0);
    if (SSL_set_min_proto_version(ssl, TLS1_VERSION) != 1 ||
        SSL_set_cipher_list(ssl, "DEFAULT@SECLEVEL=0") != 1) {
      return SSL_CLIENT_HELLO_ERROR;
    }
  }
  return SSL_CLIENT_HELLO_SUCCESS;
}

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::make(std::string_view certificate_chain_pem,
                                                     std::string_view key_pem, bool legacy) {
  ERR_clear_error();
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) return tls_error("TLS is not available");
  std::unique_ptr<TlsContext> made(new TlsContext(context));
  if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
    return tls_error("TLS 1.2 is not available");
  }
  // Compression leaks, and renegotiation lets a client burn our processor.
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  // An idle connection does not keep OpenSSL's 34 KB of record buffers.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
  // Sessions are resumed by tickets, which cost the server no memory.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // AES-128 is as safe here and a fifth cheaper than OpenSSL's first choice.
  if (SSL_CTX_set_ciphersuites(context,
                               "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                               "TLS_CHACHA20_POLY1305_SHA256") != 1) {
    return tls_error("TLS 1.3 is not available");
  }
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  if (legacy) SSL_CTX_set_client_hello_cb(context, allow_old_client, nullptr);
  ORRERY_TRY(use_certificate_chain(context, certificate_chain_pem));
  ORRERY_TRY(use_key(context, key_pem));
  return made;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

TlsSession::TlsSession(const TlsContext& context, std::string_view first_input)
    : ssl_(SSL_new(context.context_)), input_capacity_(std::max(kInputBytes, first_input.size())) {
  BIO* bio = ssl_ != nullptr ? BIO_new(bio_method()) : nullptr;
  if (bio == nullptr) {
    SSL_free(ssl_);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_accept_state(ssl_);
  input_ = std::make_unique_for_overwrite<char[]>(input_capacity_);
  input_end_ = first_input.copy(input_.get(), input_capacity_);
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

std::span<char> TlsSession::input_space() {
  if (input_begin_ == input_end_) input_begin_ = input_end_ = 0;
  ORRERY_ASSERT(input_end_ < input_capacity_);
  return {input_.get() + input_end_, input_capacity_ - input_end_};
}

void TlsSession::commit_input(std::size_t size) { input_end_ += size; }

TlsSession::Read TlsSession::read(std::span<char> plain) {
  // Without input OpenSSL would only find out that there is none, and that takes it a while.
  if (input_size() == 0 && SSL_pending(ssl_) == 0) return {Status::NeedInput};
  ERR_clear_error();
  std::size_t size = 0;
  const int result = SSL_read_ex(ssl_, plain.data(), plain.size(), &size);
  if (result == 1) return {Status::Data, size};
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return {Status::NeedInput};
    case SSL_ERROR_ZERO_RETURN:
      return {Status::Closed};
    default:
      ERR_clear_error();
      return {Status::Failed};
  }
}

bool TlsSession::write(std::string_view plain) {
  if (plain.empty()) return true;
  ERR_clear_error();
  std::size_t written = 0;
  const bool done =
      SSL_write_ex(ssl_, plain.data(), plain.size(), &written) == 1 && written == plain.size();
  if (!done) ERR_clear_error();
  return done;
}

void TlsSession::close() {
  if (!handshake_done()) return;
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

bool TlsSession::handshake_done() const { return SSL_is_init_finished(ssl_) == 1; }

}  // namespace orrery::http
