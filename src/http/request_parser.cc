#include "http/request_parser.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <boost/beast/http/basic_parser.hpp>

#include "base/assert.h"
#include "http/memory_budget.h"

namespace orrery::http {
namespace {

namespace beast = boost::beast;

// An SDK's request with a 1 KB document has 3 KB. Idle connections keep at most kBufferBytesKept.
constexpr std::size_t kBufferBytes = 8 * 1024;
constexpr std::size_t kBufferBytesKept = 16 * 1024;
// Room behind the head for chunks, or a small body, to be read into.
constexpr std::size_t kRoomBehindHead = 4 * 1024;
constexpr std::size_t kBodyBytesFirst = 64 * 1024;
constexpr std::size_t kBodyBytesKept = 8 * 1024;
// An SDK sends thirty. Bounds the memory for fields, which is more than that of a short line.
constexpr std::size_t kHeaderCountMax = 1'000;

constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

bool is_token(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

Error bad_request(std::string_view what) {
  return Error(ErrorCode::BadRequest, fmt::format("The request is not valid HTTP: {}.", what));
}

Error too_large(std::size_t body_bytes_max) {
  return Error(ErrorCode::RequestTooLarge,
               fmt::format("Request size is too large: the body is over the limit of {} bytes.",
                           body_bytes_max));
}

}  // namespace

// Beast checks the grammar of the head, Connection and Content-Length; this keeps views of what it
// found. Beast never sees a body: for chunked ones it asserts what a client can make false.
class RequestParser::HeadParser final : public beast::http::basic_parser<true> {
 public:
  HeadParser(std::string_view head, Request& request) : head_(head), request_(request) {}

  int version = 0;
  bool expects_continue = false;
  bool too_many_headers = false;

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int http_version, beast::error_code&) override {
    request_.method = view(method);
    request_.target = view(target);
    version = http_version;
  }

  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     beast::error_code& error) override {
    if (is_folded(view(name), view(value))) {
      error = beast::http::error::bad_obs_fold;
      return;
    }
    if (request_.header_count() == kHeaderCountMax) {
      too_many_headers = true;
      error = beast::http::error::header_limit;
      return;
    }
    if (field == beast::http::field::transfer_encoding) {
      // With any other coding Beast would see no body, and a proxy in front of us another one.
      if (!equal_ignoring_case(view(value), "chunked") || version == 10) {
        error = beast::http::error::bad_transfer_encoding;
        return;
      }
    } else if (field == beast::http::field::expect) {
      expects_continue = version >= 11 && equal_ignoring_case(view(value), "100-continue");
    }
    request_.add_header(view(name), view(value));
  }

  // The standard lets us refuse values that span lines, and no client has sent any for twenty
  // years. Beast unfolds them into memory of its own, unless there is nothing on the first line:
  // then the value is where it was, behind the end of a line.
  bool is_folded(std::string_view name, std::string_view value) const {
    const char* const head_end = head_.data() + head_.size();
    const char* const name_end = name.data() + name.size();
    if (!value.empty()) {
      if (value.data() < name_end || value.data() >= head_end) return true;
      return std::find(name_end, value.data(), '\n') != value.data();
    }
    const char* const line_end = std::find(name_end, head_end, '\n');
    return line_end + 1 < head_end && (line_end[1] == ' ' || line_end[1] == '\t');
  }

  void on_header_impl(beast::error_code&) override {}
  void on_finish_impl(beast::error_code&) override {}
  // These are for responses and bodies.
  void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, beast::error_code&) override {}
  std::size_t on_body_impl(beast::string_view, beast::error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, beast::error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view, beast::error_code&) override {
    return 0;
  }

  std::string_view head_;
  Request& request_;
};

RequestParser::RequestParser(std::size_t head_bytes_max, std::size_t body_bytes_max)
    : head_bytes_max_(head_bytes_max), body_bytes_max_(body_bytes_max), chunks_(body_bytes_max) {}

RequestParser::~RequestParser() = default;

void RequestParser::reserve(std::size_t capacity) {
  auto larger = std::make_unique_for_overwrite<char[]>(capacity);
  if (end_ > begin_) std::memcpy(larger.get(), buffer_.get() + begin_, end_ - begin_);
  buffer_ = std::move(larger);
  capacity_ = capacity;
  searched_ -= begin_;
  end_ -= begin_;
  begin_ = 0;
}

std::span<char> RequestParser::space() {
  if (stage_ == Stage::SizedBody && !body_in_place_) {
    if (body_received_ == body_.size()) {
      const auto size = std::min(body_size_, std::max(kBodyBytesFirst, 2 * body_received_));
      // Into a new string: one that grows takes up to twice as much, and the body must not take
      // more than was announced. Not the size the callback is told: libstdc++ 12 tells it the
      // capacity.
      std::string larger;
      larger.resize_and_overwrite(size, [&](char* data, std::size_t) {
        std::memcpy(data, body_.data(), body_received_);
        return size;
      });
      body_ = std::move(larger);
    }
    return {body_.data() + body_received_, body_.size() - body_received_};
  }
  if (stage_ == Stage::Head && end_ == capacity_) {
    if (begin_ > 0) {
      std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
      searched_ -= begin_;
      end_ -= begin_;
      begin_ = 0;
    } else {
      reserve(std::max(kBufferBytes, 2 * capacity_));
    }
  }
  ORRERY_ASSERT(end_ < capacity_);
  return {buffer_.get() + end_, capacity_ - end_};
}

std::size_t RequestParser::memory_bytes() const {
  const bool announced = stage_ == Stage::SizedBody && !body_in_place_;
  return capacity_ + request_.memory_bytes() +
         (announced ? std::max(body_size_, body_.capacity()) : body_.capacity());
}

void RequestParser::commit(std::size_t size) {
  if (stage_ == Stage::SizedBody && !body_in_place_) {
    body_received_ += size;
  } else {
    end_ += size;
  }
}

Result<RequestParser::Progress> RequestParser::advance() {
  switch (stage_) {
    case Stage::Head:
      return find_head();
    case Stage::ChunkedBody:
      return advance_chunks();
    case Stage::SizedBody:
      if (body_in_place_) {
        if (end_ - head_end_ < body_size_) return Progress::NeedMore;
        request_.body = {buffer_.get() + head_end_, body_size_};
        return complete(head_end_ + body_size_);
      }
      if (body_received_ < body_size_) return Progress::NeedMore;
      request_.body = body_;
      return complete(head_end_);
    case Stage::Complete:
      return Progress::Complete;
  }
  std::unreachable();
}

Result<RequestParser::Progress> RequestParser::find_head() {
  // The standard asks to overlook empty lines here: old clients send one behind a body.
  if (searched_ == begin_) {
    while (end_ - begin_ >= 2 && buffer_[begin_] == '\r' && buffer_[begin_ + 1] == '\n') {
      begin_ += 2;
    }
    searched_ = begin_;
  }
  if (begin_ == end_) return Progress::NeedMore;

  const char* start = buffer_.get() + searched_;
  const auto* found =
      static_cast<const char*>(memmem(start, end_ - searched_, kHeadEnd.data(), kHeadEnd.size()));
  if (found != nullptr) {
    const auto head_end = static_cast<std::size_t>(found - buffer_.get()) + kHeadEnd.size();
    if (head_end - begin_ <= head_bytes_max_) return parse_head(head_end);
  }
  if (found != nullptr || end_ - begin_ >= head_bytes_max_) {
    return Error(ErrorCode::HeadTooLarge,
                 fmt::format("The request line and headers are larger than the limit of {} bytes.",
                             head_bytes_max_));
  }
  const bool first_look = searched_ == begin_;
  // The end of a head may be cut in two: look at its first three bytes again.
  if (end_ - begin_ > kHeadEnd.size() - 1) searched_ = end_ - (kHeadEnd.size() - 1);
  if (first_look || searched_ - begin_ < kBufferBytes) return check_first_line();
  return Progress::NeedMore;
}

// Refuses text that is no request early, not at the deadline: somebody may be typing it.
Result<RequestParser::Progress> RequestParser::check_first_line() const {
  const auto text = unparsed();
  if (!is_token(text.front()) && text.front() != '\r') {
    return bad_request("it does not start with a method");
  }
  const auto line_end = text.find('\n');
  if (line_end == std::string_view::npos) return Progress::NeedMore;
  const auto line = text.substr(0, line_end);
  if (!line.ends_with(" HTTP/1.1\r") && !line.ends_with(" HTTP/1.0\r")) {
    return bad_request("the request line must be a method, a target and HTTP/1.1");
  }
  return Progress::NeedMore;
}

Result<RequestParser::Progress> RequestParser::parse_head(std::size_t head_end) {
  if (capacity_ - head_end < kRoomBehindHead) {
    const auto head_size = head_end - begin_;
    reserve(end_ - begin_ + kRoomBehindHead);
    head_end = head_size;
  }
  head_end_ = head_end;

  const std::string_view head(buffer_.get() + begin_, head_end_ - begin_);
  HeadParser parser(head, request_);
  parser.header_limit(static_cast<std::uint32_t>(head.size()));
  parser.body_limit(boost::none);
  beast::error_code error;
  const auto used = parser.put(boost::asio::buffer(head.data(), head.size()), error);
  if (parser.too_many_headers) {
    return Error(ErrorCode::HeadTooLarge,
                 fmt::format("The request has more than {} headers.", kHeaderCountMax));
  }
  if (error) return bad_request(error.message());
  if (used != head.size() || !parser.is_header_done()) return bad_request("the head is broken");

  version_ = parser.version;
  keep_alive_ = parser.keep_alive();
  expects_continue_ = parser.expects_continue;
  if (parser.chunked()) {
    chunks_ = ChunkDecoder(body_bytes_max_);
    stage_ = Stage::ChunkedBody;
  } else {
    const auto length = parser.content_length().value_or(0);
    if (length > body_bytes_max_) return too_large(body_bytes_max_);
    body_size_ = static_cast<std::size_t>(length);
    body_in_place_ = body_size_ <= capacity_ - head_end_;
    if (!body_in_place_) {
      // All that is behind the head is body then, since the body does not fit there.
      body_received_ = end_ - head_end_;
      body_.assign(buffer_.get() + head_end_, body_received_);
      end_ = head_end_;
    }
    stage_ = Stage::SizedBody;
  }
  ORRERY_TRY(auto progress, advance());
  return progress == Progress::NeedMore ? Progress::HeadComplete : progress;
}

Result<RequestParser::Progress> RequestParser::advance_chunks() {
  const std::string_view raw(buffer_.get() + head_end_, end_ - head_end_);
  ORRERY_TRY(const auto used, chunks_.decode(raw, body_));
  if (!chunks_.done()) {
    end_ = head_end_;
    return Progress::NeedMore;
  }
  request_.body = body_;
  return complete(head_end_ + used);
}

RequestParser::Progress RequestParser::complete(std::size_t message_end) {
  message_end_ = message_end;
  stage_ = Stage::Complete;
  return Progress::Complete;
}

void RequestParser::next() {
  ORRERY_ASSERT(stage_ == Stage::Complete);
  begin_ = message_end_;
  if (begin_ == end_) begin_ = end_ = 0;
  searched_ = begin_;
  // One large request must not make the connection large for the rest of its life.
  if (capacity_ > kBufferBytesKept && end_ - begin_ < kBufferBytes / 2) reserve(kBufferBytes);
  if (body_.capacity() > kBodyBytesKept) {
    free_memory(body_);
  } else {
    body_.clear();
  }
  body_received_ = 0;
  request_.clear();
  stage_ = Stage::Head;
}

}  // namespace orrery::http
