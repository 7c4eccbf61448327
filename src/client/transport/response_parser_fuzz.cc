// Whatever comes over a connection: it is an answer or it is refused, and in which pieces it came
// makes no difference.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string_view>

#include "base/assert.h"
#include "client/transport/response_parser.h"

namespace {

using orrery::client::Reply;
using orrery::client::ResponseParser;

struct Result {
  bool refused = false;
  bool keep_alive = false;
  Reply reply{};

  bool operator==(const Result& other) const {
    if (refused || other.refused) return refused == other.refused;
    return keep_alive == other.keep_alive && reply.status == other.reply.status &&
           reply.headers == other.reply.headers && reply.body == other.reply.body;
  }
};

/// The answer in `bytes`, of which as many come at a time as `next_size` says.
template <typename NextSize>
Result parse(ResponseParser& parser, bool head_only, std::string_view bytes, NextSize next_size) {
  parser.reset(head_only);
  while (!bytes.empty() && !parser.complete()) {
    const auto room = parser.room();
    ORRERY_ASSERT(!room.empty());
    const std::size_t count = std::min({room.size(), bytes.size(), next_size()});
    std::memcpy(room.data(), bytes.data(), count);
    bytes.remove_prefix(count);
    if (!parser.received(count)) return {.refused = true};
  }
  // Nobody asked for what follows an answer.
  if (parser.complete() && !bytes.empty()) return {.refused = true};
  if (!parser.complete() && !parser.closed()) return {.refused = true};
  ORRERY_ASSERT(parser.complete());
  return {.keep_alive = parser.keep_alive(), .reply = parser.take()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const bool head_only = (data[0] & 1) != 0;
  std::minstd_rand random(data[1] + 1u);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  ResponseParser parser;
  const Result whole = parse(parser, head_only, bytes, [size] { return size; });
  // The same parser, as connections that are used again have it.
  const Result single = parse(parser, head_only, bytes, [] { return std::size_t{1}; });
  const Result pieces =
      parse(parser, head_only, bytes, [&random] { return std::size_t{1} + random() % 24; });
  ORRERY_ASSERT(whole == single);
  ORRERY_ASSERT(whole == pieces);
  ORRERY_ASSERT(whole.refused || whole.reply.status >= 200);
  return 0;
}
