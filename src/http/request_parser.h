// Turns the bytes of a connection into requests.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/chunk_decoder.h"
#include "http/message.h"

namespace orrery::http {

/// Holds the bytes of a connection that are not answered yet and finds one request after the other
/// in them. Use: read into space(), commit() what came, advance(); when that says Complete, answer
/// request() and call next(). Bytes behind a request are kept for the following one.
///
/// The head is parsed once it is there as a whole, so that views of it can point into the buffer:
///
///     buffer   | answered | head | body, when it fits, or chunks not decoded yet | free |
///                         begin_ head_end_                                  end_       capacity_
///
/// From then on until next() the head does not move. A longer body has its own memory, which grows
/// with what arrives, not with what was announced.
class RequestParser {
 public:
  enum class Progress {
    NeedMore,      ///< read more
    HeadComplete,  ///< said once, when the body is still on its way; otherwise like NeedMore
    Complete,
  };

  RequestParser(std::size_t head_bytes_max, std::size_t body_bytes_max);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// Where the next bytes go: never empty while advance() says NeedMore or HeadComplete.
  std::span<char> space();
  void commit(std::size_t size);

  /// After an error nothing more can be read from this connection: where the next request would
  /// start is unknown. HeadTooLarge, RequestTooLarge, or BadRequest with what is wrong.
  Result<Progress> advance();

  /// Valid after Complete and until next(); it has neither `secure` nor `from_loopback`.
  Request& request() { return request_; }
  /// The client's wishes for the connection; valid after HeadComplete or Complete.
  bool keep_alive() const { return keep_alive_; }
  bool expects_continue() const { return expects_continue_; }
  /// HTTP/1.0 closes unless it is told otherwise.
  bool is_http_1_0() const { return version_ == 10; }

  /// Forgets the request that was complete.
  void next();

  /// Whether some, but not all of a request has arrived.
  bool started() const { return stage_ != Stage::Head || begin_ != end_; }
  /// Whether bytes have arrived behind the request that is complete.
  bool has_leftover() const { return stage_ == Stage::Complete && message_end_ < end_; }
  /// Bytes of which nothing is known yet; only before the head is complete.
  std::string_view unparsed() const { return {buffer_.get() + begin_, end_ - begin_}; }
  /// The memory that the request takes, or will have taken when its announced body is there.
  std::size_t memory_bytes() const;
  bool has_head() const { return stage_ != Stage::Head; }
  /// Takes back what was committed: it was no HTTP.
  void discard() { begin_ = end_ = searched_ = 0; }

 private:
  enum class Stage { Head, SizedBody, ChunkedBody, Complete };
  class HeadParser;

  Result<Progress> find_head();
  Result<Progress> parse_head(std::size_t head_end);
  Result<Progress> check_first_line() const;
  Result<Progress> advance_chunks();
  Progress complete(std::size_t message_end);
  void reserve(std::size_t capacity);

  const std::size_t head_bytes_max_;
  const std::size_t body_bytes_max_;

  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t searched_ = 0;  // from begin_ up to here there is no end of a head
  std::size_t head_end_ = 0;
  std::size_t message_end_ = 0;  // within the buffer

  Stage stage_ = Stage::Head;
  bool keep_alive_ = false;
  bool expects_continue_ = false;
  int version_ = 11;
  std::size_t body_size_ = 0;  // announced
  bool body_in_place_ = false;
  std::size_t body_received_ = 0;  // when it has its own memory
  std::string body_;
  ChunkDecoder chunks_;
  Request request_;
};

}  // namespace orrery::http
