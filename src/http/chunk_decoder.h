// Takes the chunked transfer coding off a request body, in whatever fragments it arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace orrery::http {

/// Decodes one body. Extensions and trailers are read and dropped. It keeps no copy of what it was
/// fed, and it is stricter than the standard asks: what two parsers could read differently, such as
/// a bare LF, is an error, because that is how requests are smuggled.
///
///     chunk      = size [ ";" extension ] CRLF data CRLF
///     last chunk = "0"  [ ";" extension ] CRLF *( trailer CRLF ) CRLF
class ChunkDecoder {
 public:
  explicit ChunkDecoder(std::size_t body_bytes_max) : body_bytes_max_(body_bytes_max) {}

  /// Appends the data in `input` to `body` and returns how much of `input` it used: all of it,
  /// unless the body ended. BadRequest when the coding is broken, RequestTooLarge when the data
  /// are, or are announced to be, above the limit.
  Result<std::size_t> decode(std::string_view input, std::string& body);
  bool done() const { return state_ == State::Done; }

 private:
  enum class State {
    Size,         // at a digit of the size
    Extension,    // between the size and CR
    SizeLf,       // at the LF after the size
    Data,         // within the data
    DataCr,       // at the CR after the data
    DataLf,       // at the LF after the data
    TrailerLine,  // at the start of a trailer, or at the CR of the empty line
    Trailer,      // within a trailer
    TrailerLf,    // at the LF after a trailer
    EndLf,        // at the LF of the empty line
    Done,
  };

  State state_ = State::Size;
  unsigned digits_ = 0;
  std::uint64_t chunk_left_ = 0;
  std::size_t framing_bytes_ = 0;  // of this chunk's head, or of all trailers
  std::size_t body_bytes_max_;
};

}  // namespace orrery::http
