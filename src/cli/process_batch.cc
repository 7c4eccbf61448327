#include "cli/process_batch.h"

#include <fmt/format.h>

#include "json/document_text.h"

namespace orrery::cli {
namespace {

void append_on_one_line(std::string& out, std::string_view document) {
  for (const char letter : document) {
    out += letter == '\n' || letter == '\r' ? ' ' : letter;
  }
}

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

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string_view plain_position(std::string_view position) {
  if (position.size() >= 2 && position.starts_with('"') && position.ends_with('"')) {
    return position.substr(1, position.size() - 2);
  }
  return position;
}

std::string json_lines(Changes changes) {
  std::size_t size = 0;
  for (const std::string_view change : changes) size += change.size() + 1;
  std::string lines;
  lines.reserve(size);
  for (const std::string_view change : changes) {
    append_on_one_line(lines, change);
    lines += '\n';
  }
  return lines;
}

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
    append_on_one_line(text, changes[index]);
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

}  // namespace orrery::cli
