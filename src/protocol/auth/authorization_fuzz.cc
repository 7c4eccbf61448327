// Parsed authorization headers and dates survive a round trip through their text.
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "protocol/auth/auth_signature.h"
#include "protocol/wire/resource_path.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  const auto header = parse_authorization(input);
  if (header) {
    ORRERY_ASSERT(!header->type.empty());
    ORRERY_ASSERT(!header->version.empty());
    ORRERY_ASSERT(!header->signature.empty());
    ORRERY_ASSERT(header->signature.find(',') == std::string::npos);
    const std::string plain =
        "type=" + header->type + "&ver=" + header->version + "&sig=" + header->signature;
    const std::string encoded = percent_encode_path(plain);
    // Escaping may pass the length limit that the input kept.
    if (encoded.size() <= 1024) {
      const auto again = parse_authorization(encoded);
      ORRERY_ASSERT(again.has_value());
      ORRERY_ASSERT(again->type == header->type);
      ORRERY_ASSERT(again->version == header->version);
      ORRERY_ASSERT(again->signature == header->signature);
    }
  } else {
    ORRERY_ASSERT(header.error().code() == ErrorCode::Unauthorized);
  }

  if (const auto time = parse_http_date(input)) {
    ORRERY_ASSERT(parse_http_date(format_http_date(*time)) == time);
  }

  static const MasterKey key = MasterKey::parse(base64_encode(std::string(64, 'k'))).value();
  const SignedContent content{
      .verb = "GET", .resource_type = "docs", .link = input, .x_ms_date = input, .date = {}};
  ORRERY_ASSERT(key.verify(content, key.sign(content)));
  const auto read_back = parse_authorization(format_authorization(key.sign(content)));
  ORRERY_ASSERT(read_back.has_value() && key.verify(content, read_back->signature));
  return 0;
}
