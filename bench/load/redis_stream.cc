// A Redis stream as a change feed: the other side of the ratio `feed-vs-redis`.
//
//   redis_stream fill --port P --count N [--doc-bytes 1024]
//   redis_stream read --port P --count N [--page 4000]
//
// `fill` adds N entries of one field each, in pipelines; `read` reads them all with XREAD, page
// after page on one connection, and throws them away. Prints one JSON object.

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "client.h"

namespace {

using namespace bench;

constexpr std::string_view kStream = "docs";

// Replies of the protocol, read from a socket as a sequence of words: lines, and strings of a
// length.
class Replies {
 public:
  explicit Replies(int fd) : fd_(fd), buffer_(8 << 20) {}

  /// The next line without its end; valid until the next call.
  std::string_view line() {
    for (std::size_t looked = at_;;) {
      for (; looked + 1 < filled_; ++looked) {
        if (buffer_[looked] == '\r' && buffer_[looked + 1] == '\n') {
          const std::string_view found(&buffer_[at_], looked - at_);
          at_ = looked + 2;
          return found;
        }
      }
      looked -= at_;
      fill();
      looked += at_;
    }
  }
  /// The number of a line that begins with `kind`.
  std::int64_t number(char kind) {
    const std::string_view text = line();
    std::int64_t value = 0;
    if (text.empty() || text[0] != kind ||
        std::from_chars(text.data() + 1, text.data() + text.size(), value).ec != std::errc()) {
      fail("unexpected reply: " + std::string(text.substr(0, 200)));
    }
    return value;
  }
  /// A string of a length: its size; its bytes are gone over.
  std::size_t skip_string(std::string* copy = nullptr) {
    const auto size = static_cast<std::size_t>(number('$'));
    while (filled_ - at_ < size + 2) fill();
    if (copy != nullptr) copy->assign(&buffer_[at_], size);
    at_ += size + 2;
    return size;
  }

 private:
  void fill() {
    if (at_ > 0) {
      std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(at_),
                buffer_.begin() + static_cast<std::ptrdiff_t>(filled_), buffer_.begin());
      filled_ -= at_;
      at_ = 0;
    }
    if (filled_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
    const ssize_t got = ::recv(fd_, &buffer_[filled_], buffer_.size() - filled_, 0);
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) fail("Redis closed the connection");
    filled_ += static_cast<std::size_t>(got);
  }

  int fd_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
};

void append_word(std::string& out, std::string_view word) {
  out += "$" + std::to_string(word.size()) + "\r\n";
  out.append(word).append("\r\n");
}

std::uint64_t fill(int fd, std::uint64_t count, std::size_t doc_bytes) {
  constexpr std::uint64_t kPipeline = 256;
  Replies replies(fd);
  std::mt19937_64 random(1);
  std::string body(doc_bytes, 'x');
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t batch = std::min(kPipeline, count - done);
    std::string request;
    for (std::uint64_t i = 0; i < batch; ++i) {
      for (std::size_t at = 0; at + 8 <= body.size() / 2; at += 8) {
        std::uint64_t bits = random();
        for (std::size_t k = 0; k < 8; ++k, bits >>= 8) {
          body[at + k] = static_cast<char>('a' + (bits & 15));
        }
      }
      request += "*5\r\n";
      append_word(request, "XADD");
      append_word(request, kStream);
      append_word(request, "*");
      append_word(request, "body");
      append_word(request, body);
    }
    send_all(fd, request);
    for (std::uint64_t i = 0; i < batch; ++i) replies.skip_string();
    done += batch;
  }
  return count;
}

std::uint64_t read(int fd, std::uint64_t page) {
  Replies replies(fd);
  std::string last = "0-0";
  std::uint64_t total = 0;
  for (;;) {
    std::string request = "*6\r\n";
    append_word(request, "XREAD");
    append_word(request, "COUNT");
    append_word(request, std::to_string(page));
    append_word(request, "STREAMS");
    append_word(request, kStream);
    append_word(request, last);
    send_all(fd, request);
    if (replies.number('*') < 1) return total;  // *-1: nothing more
    replies.number('*');
    replies.skip_string();
    const std::int64_t entries = replies.number('*');
    for (std::int64_t i = 0; i < entries; ++i) {
      replies.number('*');
      replies.skip_string(i + 1 == entries ? &last : nullptr);
      const std::int64_t words = replies.number('*');
      for (std::int64_t word = 0; word < words; ++word) replies.skip_string();
    }
    total += static_cast<std::uint64_t>(entries);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) fail("usage: redis_stream fill|read --port P --count N …");
  const std::string_view mode = argv[1];
  Target target;
  std::uint64_t count = 0;
  std::uint64_t page = 4000;  // about as many bytes as a page of Orrery's feed
  std::size_t doc_bytes = 1024;
  for (int i = 2; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const auto number = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--port") {
      target.port = static_cast<int>(number);
    } else if (name == "--count") {
      count = number;
    } else if (name == "--page") {
      page = number;
    } else if (name == "--doc-bytes") {
      doc_bytes = number;
    } else {
      fail("unknown option " + std::string(name));
    }
  }
  const int fd = connect_to(target);
  const auto start = SteadyClock::now();
  const std::uint64_t done = mode == "fill" ? fill(fd, count, doc_bytes) : read(fd, page);
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  ::close(fd);
  if (done != count) fail(std::to_string(done) + " entries instead of " + std::to_string(count));
  std::printf("{\"documents\":%llu,\"seconds\":%.3f,\"per_second\":%.1f}\n",
              static_cast<unsigned long long>(done), seconds, static_cast<double>(done) / seconds);
}
