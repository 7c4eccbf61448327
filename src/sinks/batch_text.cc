#include "sinks/batch_text.h"

#include <fmt/format.h>

#include "base/fnv1a.h"
#include "json/document_text.h"
#include "json/lines.h"
#include "processor/leases/lease.h"

namespace orrery::sinks {
namespace {

using processor::plain_position;

}  // namespace

std::string envelope(const processor::ObserverContext& context, Changes changes) {
  std::string text = "{";
  const auto add = [&text](std::string_view name, std::string_view value) {
    json::append_quoted(text, name);
    text += ':';
    json::append_quoted(text, value);
    text += ',';
  };
  add("lease", context.lease_token());
  add("range", context.partition_key_range_id());
  text += fmt::format("\"epoch\":{},", context.epoch());
  add("from", plain_position(context.from()));
  add("to", plain_position(context.to()));
  text += "\"documents\":[";
  for (std::size_t index = 0; index < changes.size(); ++index) {
    if (index > 0) text += ',';
    json::append_on_one_line(text, changes[index]);
  }
  text += "]}";
  return text;
}

std::vector<std::pair<std::string, std::string>> facts_of(const processor::ObserverContext& context,
                                                          std::size_t count) {
  return {{"lease", context.lease_token()},
          {"range", context.partition_key_range_id()},
          {"epoch", fmt::format("{}", context.epoch())},
          {"from", std::string(plain_position(context.from()))},
          {"to", std::string(plain_position(context.to()))},
          {"count", fmt::format("{}", count)}};
}

std::string idempotency_key(const processor::ObserverContext& context, Changes changes) {
  std::uint64_t hash = kFnv1aBasis;
  for (const std::string_view change : changes) hash = fnv1a("\n", fnv1a(change, hash));
  return fmt::format("{}/{}/{}/{:016x}", context.lease_token(), context.epoch(),
                     plain_position(context.to()), hash);
}

}  // namespace orrery::sinks
