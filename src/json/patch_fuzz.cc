// The input is `[document, operations]`. Whatever they are, applying ends with valid JSON or with a
// message, and a second time it ends the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "json/patch.h"
#include "json/value.h"

namespace {

using namespace orrery;
using namespace orrery::json;

std::string applied(const Value& document, const Patch& patch) {
  Value changed = Value::referring_to(document);
  const auto done = patch.apply(changed);
  if (!done) {
    ORRERY_ASSERT(done.error().code() == ErrorCode::BadRequest);
    return done.error().message();
  }
  const std::string text = changed.to_text();
  // An operation may nest it too deep; that is checked where documents are taken in.
  if (const auto again = Value::parse(text)) ORRERY_ASSERT(again->is_object());
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto value = Value::parse(input);
  if (!value || !value->is_array()) return 0;
  const Value document = value->element(0);
  if (!document.is_object()) return 0;
  const auto patch = Patch::parse(value->element(1));
  if (!patch) {
    ORRERY_ASSERT(patch.error().code() == ErrorCode::BadRequest);
    return 0;
  }
  ORRERY_ASSERT(applied(document, *patch) == applied(document, *patch));
  return 0;
}
