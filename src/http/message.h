// Requests and responses as the rest of the server sees them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/header_name.h"
#include "base/result.h"

namespace orrery::http {

/// The backoff of a client that was refused because memory is short: those that do not read their
/// answers are dropped meanwhile.
inline constexpr std::chrono::milliseconds kMemoryRetryAfter{500};

/// The client of a request, for a handler that takes its time: one that waits for something to
/// happen, reads much, or streams. Lives as long as the request. For the connection's event loop
/// only, where nothing else is said.
class Client {
 public:
  /// Calls `leave` once, on the event loop, when there is nobody left to wait for: the client has
  /// closed the connection, or its sending side of it, or the server is stopping. The handler
  /// should then answer soon; its answer is still sent, if there is somebody to read it. Called
  /// before this returns if it has happened already. Replaces the previous callback; null removes
  /// it.
  virtual void when_gone(std::move_only_function<void()> leave) = 0;
  /// Counts an answer of so many bytes, instead of what was counted before. To be called as soon as
  /// it is there, on whichever thread has made it: on its way from there to the event loop it would
  /// belong to nobody, and the loop may be late. TooManyRequests when there is no memory for it: it
  /// is to be thrown away at once. Small ones are not counted.
  virtual Result<> hold_answer(std::size_t bytes) = 0;
  /// "127.0.0.1:4711", for diagnostics.
  virtual std::string address() const = 0;

 protected:
  ~Client() = default;
};

/// A complete request. Its views point into the connection's buffer and live until the response has
/// been sent, including its stream.
class Request {
 public:
  Client* client = nullptr;  ///< null in tests of handlers: a client that never leaves
  std::string_view method;   ///< as sent: "GET"
  std::string_view target;   ///< as sent: "/dbs/d?x"
  std::string_view body;     ///< whole; empty when there is none
  bool secure = false;       ///< arrived over TLS
  bool from_loopback = false;
  /// Set by the handler when a valid key was found on it. Idle connections without one are evicted
  /// when there are too many.
  bool authorized = false;
  /// For the handler, from the admission handler: what it has found out. 0: it was not asked.
  std::uint64_t admission = 0;
  /// Stands for the address of the client; of IPv6, for its /64 network. 0: not known.
  std::uint64_t peer = 0;

  /// The first header of that name, without surrounding white space; empty when absent.
  std::string_view header(HeaderName name) const {
    for (const Field& field : fields_) {
      if (field.hash == name.hash && equal_ignoring_case(field.name, name.text)) return field.value;
    }
    return {};
  }
  /// Tells an absent header from an empty one.
  bool has_header(HeaderName name) const {
    for (const Field& field : fields_) {
      if (field.hash == name.hash && equal_ignoring_case(field.name, name.text)) return true;
    }
    return false;
  }

  void add_header(std::string_view name, std::string_view value) {
    fields_.push_back({header_hash(name), name, value});
  }
  std::size_t header_count() const { return fields_.size(); }
  void clear() {
    method = target = body = {};
    authorized = false;
    admission = 0;
    if (fields_.capacity() > kFieldsKept) {
      fields_ = {};
    } else {
      fields_.clear();
    }
  }
  std::size_t memory_bytes() const { return fields_.capacity() * sizeof(Field); }

 private:
  // An SDK sends thirty.
  static constexpr std::size_t kFieldsKept = 128;
  struct Field {
    std::uint32_t hash;
    std::string_view name;
    std::string_view value;
  };
  std::vector<Field> fields_;
};

/// Text that several responses may send at the same time; the last of them frees it.
using SharedText = std::shared_ptr<const std::string>;

/// A body that is made while it is sent. Belongs to the connection, which calls it on its event
/// loop and destroys it when it has ended or the client is gone.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  /// The next piece; null ends the response. Called when the piece before has left, which is how a
  /// slow reader holds it back. While it waits it must heed Client::when_gone. An exception breaks
  /// the response off, so that the client can tell that it is not complete.
  virtual boost::asio::awaitable<SharedText> next() = 0;
};

/// A response under construction: header lines are written straight into the text that is sent.
class Response {
 public:
  int status = 200;
  std::string body;
  SharedText shared_body;  ///< instead of body
  std::unique_ptr<BodyStream>
      stream;  ///< instead of both: the head leaves at once, then the pieces

  std::size_t body_size() const { return shared_body ? shared_body->size() : body.size(); }

  /// `name` must be lower case, as clients of the 2010s look it up so. `value` must have no CR or
  /// LF: such characters are dropped, since a header must never be able to end the head.
  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, std::uint64_t value);
  /// The parts one behind the other.
  void add(std::string_view name, std::initializer_list<std::string_view> parts);
  std::string_view header_lines() const { return lines_; }

  /// After this response the connection is closed.
  bool close = false;
  /// The request has changed nothing. When memory is short, its client may be told to try again
  /// instead of being sent a large body.
  bool repeatable = false;

 private:
  std::string lines_;
};

}  // namespace orrery::http
