#include "cli/feed/feed_line.h"

#include <fmt/format.h>

#include "json/value.h"

namespace orrery::cli {

Result<FeedLine> FeedLine::parse(std::string_view line) {
  const auto parsed = json::Value::parse(line);
  if (!parsed || !parsed->is_object()) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("the server sent what is no part of a feed: {}", line.substr(0, 200)));
  }
  FeedLine out;
  std::string buffer;
  if (const auto etag = parsed->member("etag"); etag.is_string()) {
    out.etag = etag.as_string(buffer);
  }
  if (const auto event = parsed->member("event"); event.is_string()) {
    out.event = event.as_string(buffer);
    std::string ranges;
    const auto children = parsed->member("ranges");
    for (json::Reader reader(children); reader.next();) {
      const auto child = reader.value();
      const auto id = child.is_object() ? child.member("id") : json::Value::referring_to(child);
      if (id.is_string()) ranges += fmt::format(" {}", id.as_string(buffer));
    }
    if (!ranges.empty()) out.detail = " into" + ranges;
  }
  for (json::Walk walk(line, line.find('{')); walk.next();) {
    if (walk.name != "\"Documents\"") continue;
    for (json::Walk items(walk.value(), 0); items.next();) out.items.push_back(items.value());
  }
  return out;
}

}  // namespace orrery::cli
