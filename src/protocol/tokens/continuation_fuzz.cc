// A token is accepted only if we would have written exactly it; and any bytes make a good position.
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "protocol/tokens/continuation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  if (const auto position = decode_read_feed_continuation(input)) {
    // Tokens of earlier versions are read, and written anew.
    const std::string again = encode_continuation(*position);
    ORRERY_ASSERT(decode_read_feed_continuation(again).value() == *position);
  }
  if (const auto position = decode_list_continuation(input)) {
    ORRERY_ASSERT(encode_continuation(*position) == input);
  }

  const std::string bytes(input.substr(0, Epk::kBytesMax));
  ReadFeedPosition feed;
  feed.range_min = Epk{bytes.substr(0, kBoundaryBytesMax)};
  feed.after = DocumentNumber{size * 0x9E3779B97F4A7C15u};
  if (size % 2 == 1) feed.range_max = Epk{bytes.substr(0, kBoundaryBytesMax)};
  if (size % 3 == 1) feed.rests = {{feed.range_min, DocumentNumber{size}}};
  const std::string feed_token = encode_continuation(feed);
  ORRERY_ASSERT(feed_token.size() <= kContinuationSizeMax);
  ORRERY_ASSERT(decode_read_feed_continuation(feed_token).value() == feed);
  ORRERY_ASSERT(!decode_list_continuation(feed_token).has_value());

  const ListPosition list{bytes};
  const std::string list_token = encode_continuation(list);
  ORRERY_ASSERT(list_token.size() <= kContinuationSizeMax);
  ORRERY_ASSERT(decode_list_continuation(list_token).value() == list);
  ORRERY_ASSERT(!decode_read_feed_continuation(list_token).has_value());
  return 0;
}
