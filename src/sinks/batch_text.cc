#include "sinks/batch_text.h"

#include <fmt/format.h>

#include "json/document_text.h"
#include "json/lines.h"
#include "processor/leases/lease.h"

namespace orrery::sinks {
namespace {

using processor::plain_position;

/// FNV-1a: it has to tell the parts of one batch apart, not to withstand anybody.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char letter : text) {
      value_ = (value_ ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

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
  Hash hash;
  for (const std::string_view change : changes) {
    hash.add(change);
    hash.add("\n");
  }
  return fmt::format("{}/{}/{}/{:016x}", context.lease_token(), context.epoch(),
                     plain_position(context.to()), hash.value());
}

}  // namespace orrery::sinks
