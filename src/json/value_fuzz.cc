// Any input as JSON: accepted text is written back byte by byte, says the same when it is spread
// out, and survives being changed. Text that was not checked does no harm.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "json/order.h"
#include "json/path.h"
#include "json/scan.h"
#include "json/value.h"

namespace {

using namespace orrery;
using namespace orrery::json;

/// Of a member that is there: it is found as by walking, if it is found at all.
void check_search(std::string_view object, std::string_view name) {
  const std::string quoted = MemberSearch::quoted(name);
  if (quoted.empty()) return;
  const std::size_t found = MemberSearch::find(object, 0, quoted);
  if (found == MemberSearch::kUnknown) return;
  std::string buffer;
  Walk walk(object, 0);
  while (walk.next() && walk.plain_name(buffer) != name) continue;
  ORRERY_ASSERT(found == walk.begin);
}

/// Spreads everything out, and checks each level against what the text says.
void spread(Value& value) {
  if (value.is_array()) {
    const Value text = Value::referring_to(value);
    const std::size_t size = text.size();
    ORRERY_ASSERT(value.elements().size() == size);
    for (std::size_t i = 0; i < size; ++i) {
      if (i < 4) ORRERY_ASSERT(text.element(i).to_text() == value.elements()[i].to_text());
      spread(value.elements()[i]);
    }
  } else if (value.is_object()) {
    const Value text = Value::referring_to(value);
    ORRERY_ASSERT(value.members().size() == text.size());
    for (Member& member : value.members()) {
      std::string buffer;
      const std::string_view name = member.name.as_string(buffer);
      ORRERY_ASSERT(!text.member(name).is_undefined());
      if (text.text()) check_search(*text.text(), name);
      spread(member.value);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  PathSet paths;
  const Step a = std::string("a");
  const Step b = std::string("b");
  const Step first = std::uint64_t{0};
  for (const auto& path : {std::vector<Step>{}, {a}, {a, b}, {b, first}, {first}, {first, a}}) {
    paths.add(path);
  }
  std::vector<Value> found(paths.size());
  const Value unchecked = Value::of_checked(text);
  paths.read(unchecked, found);
  unchecked.to_text();
  unchecked.size();

  const auto parsed = Value::parse(text);
  if (!parsed) {
    ORRERY_ASSERT(parsed.error().code() == ErrorCode::BadRequest);
    return 0;
  }
  const std::string written = parsed->to_text();
  ORRERY_ASSERT(text.contains(written));
  Value tree = *parsed;
  spread(tree);
  const std::string again = tree.to_text();
  const auto reparsed = Value::parse(again);
  ORRERY_ASSERT(reparsed.has_value());
  ORRERY_ASSERT(compare(*parsed, *reparsed) == 0 && compare(*parsed, tree) == 0);
  std::vector<Value> found_in_tree(paths.size());
  paths.read(tree, found_in_tree);
  for (std::size_t i = 0; i < found.size(); ++i) {
    ORRERY_ASSERT(compare(found[i], found_in_tree[i]) == 0);
  }

  tree.own();
  if (tree.is_object()) {
    tree.set_member("a", Value::array({Value::string("x")}));
    ORRERY_ASSERT(tree.member("a").element(0).is_string("x"));
    tree.erase_member("a");
    ORRERY_ASSERT(tree.member("a").is_undefined());
    ORRERY_ASSERT(Value::parse(tree.to_text()).has_value());
  }
  return 0;
}
