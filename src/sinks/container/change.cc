#include "sinks/container/change.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "json/scan.h"
#include "json/value.h"

namespace orrery::sinks {
namespace {

constexpr std::array<std::string_view, 6> kSystemProperties = {"_rid", "_self",        "_etag",
                                                               "_ts",  "_attachments", "_lsn"};

}  // namespace

std::string without_system_properties(std::string_view document) {
  std::string text;
  text.reserve(document.size());
  const std::size_t open = json::after_spaces(document, 0);
  std::size_t end_before = open + 1;  // Where the member before ended, or the object began.
  std::string buffer;
  for (json::Walk walk(document, open); walk.next();) {
    const std::size_t end = walk.begin + walk.value().size();
    if (std::ranges::find(kSystemProperties, walk.plain_name(buffer)) == kSystemProperties.end()) {
      // With the comma and the spaces in front of it, unless those before it are gone.
      const auto name = static_cast<std::size_t>(walk.name.data() - document.data());
      const std::size_t begin = text.empty() && end_before > open + 1 ? name : end_before;
      text.append(text.empty() ? "{" : "").append(document.substr(begin, end - begin));
    }
    end_before = end;
  }
  return text.empty() ? "{}" : text.append("}");
}

Result<SourceChange> ChangeReader::read(std::string_view document) const {
  const auto value = json::Value::of_checked(document);
  const json::Value lsn = value.member("_lsn");
  SourceChange change;
  change.id = value.member("id").string_or_empty();
  change.rid = value.member("_rid").string_or_empty();
  if (change.id.empty() || change.rid.empty() || !lsn.is_number() || !lsn.as_number().is_integer) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("the change feed shows something without id, _rid or _lsn: {}",
                             document.substr(0, 200)));
  }
  change.lsn = static_cast<std::uint64_t>(lsn.as_number().integer);
  change.text = without_system_properties(document);
  change.key = destination_.key_of(change.text);
  change.source_epk = effective_partition_key(source_.definition(), source_.key_of(change.text));
  return change;
}

}  // namespace orrery::sinks
