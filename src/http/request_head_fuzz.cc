// Feeds arbitrary bytes in arbitrary fragments to the request parser. The first byte chooses how
// they are cut; the rest is what a client sends.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "http/request_parser.h"

namespace orrery::http {
namespace {

constexpr std::size_t kHeadBytesMax = 2'000;
constexpr std::size_t kBodyBytesMax = 20'000;

struct Seen {
  std::string method, target, body;
  bool operator==(const Seen&) const = default;
};

/// Touches every byte a request points to, so that the sanitizer sees one that is not ours, and
/// checks that the head is one piece of memory.
Seen look_at(const Request& request) {
  ORRERY_ASSERT(!request.method.empty() && !request.target.empty());
  const auto* head = request.method.data();
  ORRERY_ASSERT(request.target.data() > head && request.target.data() < head + kHeadBytesMax);
  for (const char* name : {"host", "content-length", "transfer-encoding", "x"}) {
    const auto value = request.header(name);
    ORRERY_ASSERT(value.find('\n') == std::string_view::npos);
    ORRERY_ASSERT(value.empty() ||
                  (value.data() > head && value.data() + value.size() < head + kHeadBytesMax));
  }
  ORRERY_ASSERT(request.body.size() <= kBodyBytesMax);
  return {std::string(request.method), std::string(request.target), std::string(request.body)};
}

/// The requests in `text` when it arrives in pieces of `piece` bytes, or of pseudo-random sizes.
std::vector<Seen> parse(std::string_view text, std::size_t piece) {
  RequestParser parser(kHeadBytesMax, kBodyBytesMax);
  std::vector<Seen> seen;
  std::uint32_t random = 2463534242u;
  while (true) {
    const auto progress = parser.advance();
    if (!progress) return seen;
    if (*progress == RequestParser::Progress::Complete) {
      seen.push_back(look_at(parser.request()));
      parser.next();
      continue;
    }
    if (text.empty()) return seen;
    random ^= random << 13, random ^= random >> 17, random ^= random << 5;
    const auto space = parser.space();
    ORRERY_ASSERT(!space.empty());
    const auto size =
        std::min({text.size(), space.size(), piece > 0 ? piece : std::size_t{1} + random % 50});
    std::memcpy(space.data(), text.data(), size);
    parser.commit(size);
    text.remove_prefix(size);
  }
}

}  // namespace
}  // namespace orrery::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using orrery::http::parse;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  // However it arrives, it is the same.
  const auto whole = parse(text, 100'000);
  ORRERY_ASSERT(parse(text, data[0]) == whole);
  return 0;
}
