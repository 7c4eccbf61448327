#include "client/transport/response_parser.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/trim.h"

namespace orrery::client {
namespace {

constexpr std::size_t kBufferBytes = 16 << 10;
/// Received at once where the end is not known beforehand.
constexpr std::size_t kPieceBytes = 64 << 10;

Error nonsense(std::string_view what) {
  return Error(ErrorCode::BadRequest, "the answer is not HTTP: " + std::string(what));
}

Error too_much() {
  return Error(
      ErrorCode::BadRequest,
      "the answer has more than " + std::to_string(ResponseParser::kBodyBytesMax >> 20) + " MB");
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

std::optional<std::size_t> parse_size(std::string_view text, int base) {
  std::size_t size = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), size, base);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return size;
}

/// Makes room without filling it: it is received into at once. (Some libraries hand the capacity to
/// the function, which may be more than was asked for.)
void grow(std::string& text, std::size_t size) {
  text.resize_and_overwrite(size, [size](char*, std::size_t) { return size; });
}

bool lists(std::string_view value, std::string_view word) {
  while (!value.empty()) {
    const auto comma = std::min(value.find(','), value.size());
    if (equal_ignoring_case(trimmed(value.substr(0, comma), " \t\r"), word)) return true;
    value.remove_prefix(std::min(value.size(), comma + 1));
  }
  return false;
}

}  // namespace

void ResponseParser::reset(bool head_only) {
  state_ = State::Head;
  head_only_ = head_only;
  begun_ = false;
  keep_alive_ = true;
  chunked_ = false;
  has_length_ = false;
  length_ = filled_ = chunk_left_ = used_ = searched_ = 0;
  in_trailer_ = chunk_ends_ = false;
  reply_ = {};
}

std::span<char> ResponseParser::room() {
  if (state_ == State::Sized) return std::span(reply_.body).subspan(filled_);
  if (state_ == State::UntilClosed) {
    // The text grows by doubling; what is received in vain is cut off at the end.
    if (reply_.body.size() - filled_ < kPieceBytes) {
      grow(reply_.body, std::max(filled_ * 2, filled_ + kPieceBytes));
    }
    return std::span(reply_.body).subspan(filled_);
  }
  if (buffer_.size() - used_ < kBufferBytes / 4) {
    buffer_.resize(std::max(kBufferBytes, buffer_.size() * 2));
  }
  return std::span(buffer_).subspan(used_);
}

Result<> ResponseParser::received(std::size_t count) {
  if (count == 0) return {};
  begun_ = true;
  switch (state_) {
    case State::Head:
      used_ += count;
      return take_head();
    case State::Sized:
      filled_ += count;
      if (filled_ == length_) state_ = State::Complete;
      return {};
    case State::UntilClosed:
      filled_ += count;
      if (filled_ > kBodyBytesMax) return too_much();
      return {};
    case State::Chunked:
      used_ += count;
      return take_chunks();
    case State::Complete:
      break;
  }
  return nonsense("it goes on after its end");
}

Result<> ResponseParser::closed() {
  if (state_ == State::Complete) return {};
  keep_alive_ = false;
  if (state_ == State::UntilClosed) {
    reply_.body.resize(filled_);
    state_ = State::Complete;
    return {};
  }
  return Error(ErrorCode::BadRequest, "the connection was closed before the answer was complete");
}

Result<> ResponseParser::take_head() {
  for (;;) {
    const std::string_view text(buffer_.data(), used_);
    const auto end = text.find("\r\n\r\n", searched_);
    // Up to three bytes more may already be a part of the end.
    const bool ends = end != std::string_view::npos;
    if (ends ? end > kHeadBytesMax : used_ > kHeadBytesMax + 3) {
      return nonsense("its head does not end");
    }
    if (!ends) {
      searched_ = used_ - std::min<std::size_t>(used_, 3);
      return {};
    }
    searched_ = 0;
    const std::string_view head = text.substr(0, end);
    const auto first_end = std::min(head.find("\r\n"), head.size());
    const std::string_view first = head.substr(0, first_end);
    // "HTTP/1.1 200 OK"
    if (!first.starts_with("HTTP/1.") || first.size() < 12 || first[8] != ' ') {
      return nonsense("it does not begin with a status");
    }
    const auto status = parse_size(first.substr(9, 3), 10);
    if (!status || *status < 100) return nonsense("it does not begin with a status");
    reply_.status = static_cast<int>(*status);
    keep_alive_ = first[7] != '0';
    reply_.headers.reserve(24);
    for (std::size_t at = first_end + 2; at < head.size();) {
      const auto line_end = std::min(head.find("\r\n", at), head.size());
      ORRERY_TRY(take_line(head.substr(at, line_end - at)));
      at = line_end + 2;
    }
    const std::size_t taken = end + 4;
    const bool interim = *status < 200;
    if (!interim) {
      used_ -= taken;
      std::memmove(buffer_.data(), buffer_.data() + taken, used_);
      return begin_body();
    }
    // Only a sign of life, as 100 is: the answer follows.
    used_ -= taken;
    std::memmove(buffer_.data(), buffer_.data() + taken, used_);
    reply_ = {};
    keep_alive_ = true;
    chunked_ = has_length_ = false;
  }
}

Result<> ResponseParser::take_line(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos) return nonsense("a header has no name");
  auto& [name, value] = reply_.headers.emplace_back();
  name = line.substr(0, colon);
  std::ranges::transform(name, name.begin(), lower);
  value = trimmed(line.substr(colon + 1), " \t\r");
  if (name == "content-length") {
    const auto length = parse_size(value, 10);
    if (!length || (has_length_ && *length != length_)) return nonsense("its length is no number");
    has_length_ = true;
    length_ = *length;
  } else if (name == "transfer-encoding") {
    if (!lists(value, "chunked")) return nonsense("its transfer encoding is unknown");
    chunked_ = true;
  } else if (name == "connection") {
    if (lists(value, "close")) keep_alive_ = false;
    if (lists(value, "keep-alive")) keep_alive_ = true;
  }
  return {};
}

Result<> ResponseParser::begin_body() {
  const bool empty = head_only_ || reply_.status == 204 || reply_.status == 304;
  if (empty || (!chunked_ && has_length_ && length_ == 0)) {
    if (used_ != 0) return nonsense("it goes on after its end");
    state_ = State::Complete;
    return {};
  }
  if (chunked_) {
    state_ = State::Chunked;
    return take_chunks();
  }
  if (has_length_) {
    if (length_ > kBodyBytesMax) return too_much();
    if (used_ > length_) return nonsense("it goes on after its end");
    grow(reply_.body, length_);
    state_ = State::Sized;
  } else {
    keep_alive_ = false;
    grow(reply_.body, std::max(used_, kPieceBytes));
    state_ = State::UntilClosed;
  }
  std::memcpy(reply_.body.data(), buffer_.data(), used_);
  filled_ = used_;
  used_ = 0;
  if (state_ == State::Sized && filled_ == length_) state_ = State::Complete;
  return {};
}

Result<> ResponseParser::take_chunks() {
  std::size_t at = 0;
  const auto keep_rest = [&] {
    used_ -= at;
    std::memmove(buffer_.data(), buffer_.data() + at, used_);
  };
  while (at < used_) {
    if (chunk_left_ > 0) {
      const std::size_t count = std::min(chunk_left_, used_ - at);
      if (reply_.body.size() + count > kBodyBytesMax) return too_much();
      reply_.body.append(buffer_, at, count);
      at += count;
      chunk_left_ -= count;
      chunk_ends_ = chunk_left_ == 0;
      continue;
    }
    const std::string_view rest(buffer_.data() + at, used_ - at);
    const auto line_end = rest.find("\r\n");
    const bool ends = line_end != std::string_view::npos;
    if (ends ? line_end > kBufferBytes : rest.size() > kBufferBytes + 1) {
      return nonsense("a chunk has no size");
    }
    if (!ends) break;
    const std::string_view line = rest.substr(0, line_end);
    at += line_end + 2;
    if (chunk_ends_) {
      if (!line.empty()) return nonsense("a chunk is longer than its size");
      chunk_ends_ = false;
    } else if (in_trailer_) {
      if (!line.empty()) continue;
      if (at != used_) return nonsense("it goes on after its end");
      state_ = State::Complete;
    } else {
      const auto size = parse_size(trimmed(line.substr(0, line.find(';'))), 16);
      if (!size) return nonsense("a chunk has no size");
      chunk_left_ = *size;
      in_trailer_ = *size == 0;
    }
  }
  keep_rest();
  return {};
}

}  // namespace orrery::client
