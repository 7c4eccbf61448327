// Whatever a client sends as a document: what is accepted stays valid when the server's members are
// added, and is the same document when it comes back with them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "json/document_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  using namespace orrery::json;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const std::vector<MemberPath> wanted = {{"pk"}, {"a", "b"}, {"id"}};
  const auto document = DocumentText::parse(body, wanted);
  if (!document) {
    ORRERY_ASSERT(document.error().code() == ErrorCode::BadRequest);
    ORRERY_ASSERT(!document.error().message().empty());
    return 0;
  }
  const std::string_view text = document->open_text();
  ORRERY_ASSERT(text.starts_with('{'));
  ORRERY_ASSERT(text.size() <= body.size());
  ORRERY_ASSERT(document->has_members() || document->leaf_count() == 0);

  std::size_t leaf_count = 0;
  document->for_each_leaf([&](std::span<const std::string_view> path) {
    ORRERY_ASSERT(!path.empty() && path.size() <= kNestingMax);
    ++leaf_count;
  });
  ORRERY_ASSERT(leaf_count == document->leaf_count());

  const SystemProperties properties{
      .rid = "AAAAAA==", .self = "dbs/AAAAAA==/", .etag = "\"0000-0000\"", .ts = 1743508800};
  const std::string stored = with_system_properties(text, properties);
  const auto again = DocumentText::parse(stored, wanted);
  ORRERY_ASSERT(again.has_value());
  ORRERY_ASSERT(again->open_text() == text);
  ORRERY_ASSERT(again->leaf_count() == leaf_count);
  ORRERY_ASSERT(again->ttl().kind == document->ttl().kind);
  ORRERY_ASSERT(again->ttl().seconds == document->ttl().seconds);
  const auto id = document->id();
  const auto id_again = again->id();
  ORRERY_ASSERT(id.has_value() == id_again.has_value());
  ORRERY_ASSERT(id ? *id == *id_again : id.error() == id_again.error());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ORRERY_ASSERT(again->wanted(i) == document->wanted(i));
  }

  // A version that replaces another has them where the client had them, and is the same document.
  const std::string replaced = with_system_properties(text, properties, document->system_places());
  ORRERY_ASSERT(replaced.size() == stored.size());
  const auto sent_back = DocumentText::parse(replaced, wanted);
  ORRERY_ASSERT(sent_back.has_value() && sent_back->open_text() == text);
  ORRERY_ASSERT(with_system_properties(text, properties, sent_back->system_places()) == replaced);

  // A string that was read can be written: quoted, it is a valid document with that value.
  if (id) {
    ORRERY_ASSERT(std::get<std::string>(document->wanted(2)) == *id);
    std::string quoted = "{\"id\":";
    append_quoted(quoted, *id);
    const auto copy = DocumentText::parse(quoted + "}");
    ORRERY_ASSERT(copy.has_value() && copy->id().value() == *id);
  }
  return 0;
}
