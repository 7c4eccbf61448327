// Entries that were read can be written in both forms and are read again.
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "protocol/tokens/session_token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  const auto entries = parse_session_token(input);
  if (!entries) {
    ORRERY_ASSERT(entries.error().code() == ErrorCode::BadRequest);
    return 0;
  }
  for (const auto form : {SessionTokenForm::Simple, SessionTokenForm::Vector}) {
    std::string text;
    for (const SessionEntry& entry : *entries) {
      if (!text.empty()) text += ',';
      append_session_entry(text, form, entry.version, entry.range, entry.lsn);
    }
    const auto again = parse_session_token(text);
    ORRERY_ASSERT(again.has_value());
    auto expected = *entries;
    // The simple form has no room for a version.
    if (form == SessionTokenForm::Simple) {
      for (SessionEntry& entry : expected) entry.version = kSessionVersionUnknown;
    }
    ORRERY_ASSERT(*again == expected);
  }
  return 0;
}
