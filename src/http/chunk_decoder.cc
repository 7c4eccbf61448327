#include "http/chunk_decoder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/hex_digit.h"

namespace orrery::http {
namespace {

// More digits than any size below the limit needs, and too few to overflow 64 bits.
constexpr unsigned kSizeDigitsMax = 15;
// Bounds what a client can make us read without it counting as a body.
constexpr std::size_t kFramingBytesMax = 16 * 1024;

Error broken() { return Error(ErrorCode::BadRequest, "The chunked request body is malformed."); }

}  // namespace

Result<std::size_t> ChunkDecoder::decode(std::string_view input, std::string& body) {
  std::size_t used = 0;
  while (used < input.size() && state_ != State::Done) {
    if (state_ == State::Data) {
      const auto size =
          static_cast<std::size_t>(std::min<std::uint64_t>(chunk_left_, input.size() - used));
      body.append(input.substr(used, size));
      used += size;
      chunk_left_ -= size;
      if (chunk_left_ == 0) state_ = State::DataCr;
      continue;
    }
    const char c = input[used++];
    if (++framing_bytes_ > kFramingBytesMax) {
      return Error(ErrorCode::BadRequest,
                   "A chunk extension or the trailers of the request body are too long.");
    }
    switch (state_) {
      case State::Size:
        if (const int value = hex_value(c); value >= 0) {
          if (++digits_ > kSizeDigitsMax) return broken();
          chunk_left_ = chunk_left_ * 16 + static_cast<unsigned>(value);
          break;
        }
        if (digits_ == 0) return broken();
        if (c == '\r') {
          state_ = State::SizeLf;
        } else if (c == ';' || c == ' ' || c == '\t') {
          state_ = State::Extension;
        } else {
          return broken();
        }
        break;
      case State::Extension:
        if (c == '\n') return broken();
        if (c == '\r') state_ = State::SizeLf;
        break;
      case State::SizeLf:
        if (c != '\n') return broken();
        if (chunk_left_ > body_bytes_max_ - body.size()) {
          return Error(
              ErrorCode::RequestTooLarge,
              fmt::format("Request size is too large: the body is over the limit of {} bytes.",
                          body_bytes_max_));
        }
        framing_bytes_ = 0;
        state_ = chunk_left_ > 0 ? State::Data : State::TrailerLine;
        break;
      case State::DataCr:
        if (c != '\r') return broken();
        state_ = State::DataLf;
        break;
      case State::DataLf:
        if (c != '\n') return broken();
        digits_ = 0;
        state_ = State::Size;
        break;
      case State::TrailerLine:
        if (c == '\n') return broken();
        state_ = c == '\r' ? State::EndLf : State::Trailer;
        break;
      case State::Trailer:
        if (c == '\n') return broken();
        if (c == '\r') state_ = State::TrailerLf;
        break;
      case State::TrailerLf:
        if (c != '\n') return broken();
        state_ = State::TrailerLine;
        break;
      case State::EndLf:
        if (c != '\n') return broken();
        state_ = State::Done;
        break;
      case State::Data:
      case State::Done:
        std::unreachable();
    }
  }
  return used;
}

}  // namespace orrery::http
