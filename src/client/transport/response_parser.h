// ResponseParser: an HTTP/1.1 answer, from bytes as they come. No I/O.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/transport/transport.h"

namespace orrery::client {

/// Says where the next bytes are to be put, so that a body of known length is received in its
/// place, without a copy. For one answer at a time; reset() makes it ready for the next one.
class ResponseParser {
 public:
  /// An answer that is kept in memory; pages end at 4 MB.
  static constexpr std::size_t kBodyBytesMax = 64 << 20;
  static constexpr std::size_t kHeadBytesMax = 256 << 10;

  void reset(bool head_only);

  /// Room for what is received next; never empty while the answer is not complete.
  std::span<char> room();
  /// `count` bytes were put into room(). BadRequest when it is not HTTP, or too much of it.
  Result<> received(std::size_t count);
  /// The server closed the connection. BadRequest when the answer is not complete by that.
  Result<> closed();

  bool complete() const { return state_ == State::Complete; }
  /// Whether anything has come.
  bool begun() const { return begun_; }
  /// Whether the connection may be used again.
  bool keep_alive() const { return keep_alive_; }
  Reply take() { return std::move(reply_); }

 private:
  enum class State { Head, Sized, Chunked, UntilClosed, Complete };

  Result<> take_head();
  Result<> take_line(std::string_view line);
  Result<> begin_body();
  Result<> take_chunks();

  State state_ = State::Head;
  bool head_only_ = false;
  bool begun_ = false;
  bool keep_alive_ = true;
  bool chunked_ = false;
  bool has_length_ = false;
  std::size_t length_ = 0;  // Of the body, when it is known.
  std::size_t filled_ = 0;  // Bytes of the sized body that are there.
  std::size_t chunk_left_ = 0;
  bool in_trailer_ = false;
  bool chunk_ends_ = false;   // The line break after a chunk is still to come.
  std::string buffer_;        // Of the head, and of what is framed.
  std::size_t used_ = 0;      // Bytes of buffer_ that were received and not yet taken.
  std::size_t searched_ = 0;  // Up to here the end of the head was looked for in vain.
  Reply reply_;
};

}  // namespace orrery::client
