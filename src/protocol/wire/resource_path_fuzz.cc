// A path that was taken apart can be put together again from its names.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "protocol/utf8.h"
#include "protocol/wire/resource_path.h"

namespace {

using namespace orrery;

std::string escaped(std::string_view name) {
  std::string text;
  for (char c : percent_encode_path(name)) {
    if (c == '/') {
      text += "%2F";
    } else {
      text += c;
    }
  }
  return text;
}

/// For what lies in a container: the path with its names escaped, and a slash too many everywhere.
std::string rebuilt(const ResourcePath& path) {
  std::string target = "//dbs//" + escaped(path.names[0]) + "//colls//" + escaped(path.names[1]) +
                       "//" + std::string(resource_type_name(path.type)) + "//";
  if (!path.is_feed) target += escaped(path.names[2]) + "/";
  return target;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  ORRERY_ASSERT(percent_decode(percent_encode_path(input)).value() == input);
  const auto path = parse_resource_path(input);
  if (!path) {
    const ErrorCode code = path.error().code();
    ORRERY_ASSERT(code == ErrorCode::NotFound || code == ErrorCode::BadRequest);
    return 0;
  }

  ORRERY_ASSERT(is_valid_utf8(path->text));
  ORRERY_ASSERT(!path->link_candidates.empty() && path->link_candidates.size() <= 4);
  for (const std::string& link : path->link_candidates) {
    ORRERY_ASSERT(std::ranges::count(path->link_candidates, link) == 1);
    ORRERY_ASSERT(!link.starts_with('/'));
  }
  ORRERY_ASSERT(std::ranges::none_of(path->names, &std::string::empty));

  switch (path->type) {
    case ResourceType::Documents:
    case ResourceType::Procedures:
    case ResourceType::Triggers:
    case ResourceType::Udfs:
    case ResourceType::Conflicts:
    case ResourceType::Ranges: {
      const auto again = parse_resource_path(rebuilt(*path));
      ORRERY_ASSERT(again.has_value());
      ORRERY_ASSERT(again->type == path->type && again->is_feed == path->is_feed);
      ORRERY_ASSERT(again->names == path->names);
      break;
    }
    default:
      break;
  }
  return 0;
}
