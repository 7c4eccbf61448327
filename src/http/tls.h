// TLS as a filter between two buffers: what came from the network goes in, what must go to the
// network comes out, and no byte is read or written here. So a connection does its I/O, waiting and
// deadlines in one way for http and https, and a response leaves in as few writes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

// OpenSSL's types, so that its headers stay in tls.cc.
struct ssl_ctx_st;
struct ssl_st;

namespace orrery::http {

/// Certificate, key and rules, for all connections. Thread-safe once made.
class TlsContext {
 public:
  /// TLS 1.2 and 1.3. With `legacy` a client that offers nothing better also gets TLS 1.0 or 1.1 at
  /// security level 0; the others keep the strict rules. BadRequest for a bad certificate or key.
  static Result<std::unique_ptr<TlsContext>> make(std::string_view certificate_chain_pem,
                                                  std::string_view key_pem, bool legacy);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
};

/// The server's side of one connection. For one thread.
class TlsSession {
 public:
  enum class Status {
    Data,       ///< plain text was read
    NeedInput,  ///< feed() more; but first send what is in output()
    Closed,     ///< the client said goodbye
    Failed,     ///< broken; output() may hold an alert to send
  };
  struct Read {
    Status status;
    std::size_t size = 0;
  };

  /// `first_input` is what has arrived already.
  TlsSession(const TlsContext& context, std::string_view first_input);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Where bytes from the network go. Only when read() said NeedInput: it has used all before.
  std::span<char> input_space();
  void commit_input(std::size_t size);

  /// Continues the handshake, or decrypts into `plain`.
  Read read(std::span<char> plain);
  /// Encrypts `plain` into output(); false when the session is broken.
  [[nodiscard]] bool write(std::string_view plain);
  /// Says goodbye, into output().
  void close();
  bool handshake_done() const;

  /// Bytes to send to the network. The owner clears it.
  std::string& output() { return output_; }

  // For the BIO in tls.cc.
  std::string_view pending_input() const { return {input_.get() + input_begin_, input_size()}; }
  void consume_input(std::size_t size) { input_begin_ += size; }

 private:
  std::size_t input_size() const { return input_end_ - input_begin_; }

  ssl_st* ssl_;
  std::unique_ptr<char[]> input_;
  std::size_t input_capacity_;
  std::size_t input_begin_ = 0;
  std::size_t input_end_ = 0;
  std::string output_;
};

}  // namespace orrery::http
