#include "cli/feed/feed_printer.h"

#include <ctime>

#include <fmt/format.h>

#include "cli/terminal/terminal_text.h"
#include "json/value.h"

namespace orrery::cli {
namespace {

/// A line per change stays readable only if a large document does not fill the screen.
constexpr std::size_t kBodyCharactersMax = 160;

constexpr std::string_view kDim = "\033[2m";
constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kGreen = "\033[32m";
constexpr std::string_view kYellow = "\033[33m";
constexpr std::string_view kRed = "\033[31m";
constexpr std::string_view kPlain = "\033[0m";

std::string time_of_day(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm local{};
  ::localtime_r(&time, &local);
  char text[16];
  std::strftime(text, sizeof(text), "%H:%M:%S", &local);
  return text;
}

std::int64_t integer_of(const json::Value& value) {
  return value.is_number() ? value.as_number().integer : 0;
}

/// Without the members that the server owns: they are shown beside, or say nothing to a person.
std::string own_members(const json::Value& document) {
  std::string out = "{";
  std::string buffer;
  for (json::Reader reader(document); reader.next();) {
    const json::Value name = reader.name();
    const std::string_view text = name.as_string(buffer);
    if (text == "id" || text == "_rid" || text == "_self" || text == "_etag" ||
        text == "_attachments" || text == "_ts" || text == "_lsn") {
      continue;
    }
    if (out.size() > 1) out += ",";
    name.append_to(out);
    out += ":";
    reader.value().append_to(out);
  }
  out += "}";
  // Cut between characters, not inside one.
  std::size_t end = std::min(out.size(), kBodyCharactersMax);
  while (end < out.size() && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;
  if (end < out.size()) {
    out.resize(end);
    out += "…";
  }
  defuse(out);
  return out;
}

}  // namespace

std::int64_t lsn_of(std::string_view item) {
  const json::Value whole = json::Value::of_checked(item);
  const json::Value own = whole.member("_lsn");
  return integer_of(own.is_number() ? own : whole.member("metadata").member("lsn"));
}

FeedPrinter::Style FeedPrinter::style_of(std::string_view name) {
  if (name == "json") return Style::Json;
  if (name == "etag") return Style::Etag;
  return Style::Pretty;
}

std::string FeedPrinter::pretty(std::string_view item) const {
  const json::Value whole = json::Value::of_checked(item);
  const json::Value metadata = whole.member("metadata");
  const bool wrapped = all_versions_ && metadata.is_object();
  const json::Value document = wrapped ? whole.member("current") : json::Value::referring_to(whole);
  std::string operation = wrapped ? metadata.member("operationType").string_or_empty() : "";
  if (wrapped && metadata.member("timeToLiveExpired").is_true()) operation = "expire";
  std::string id = (operation == "delete" || operation == "expire" ? metadata.member("id")
                                                                   : document.member("id"))
                       .string_or_empty();
  const auto ts = integer_of(wrapped ? metadata.member("crts") : document.member("_ts"));
  const auto lsn = integer_of(wrapped ? metadata.member("lsn") : document.member("_lsn"));
  defuse(id);
  const auto paint = [this](std::string_view colour, std::string_view text) {
    return coloured_ ? fmt::format("{}{}{}", colour, text, kPlain) : std::string(text);
  };
  const std::string_view colour = operation == "create"    ? kGreen
                                  : operation == "replace" ? kYellow
                                  : operation.empty()      ? kPlain
                                                           : kRed;
  std::string line = paint(kDim, fmt::format("{}  {:>8}", time_of_day(ts), lsn));
  if (wrapped) line += "  " + paint(colour, fmt::format("{:<7}", operation));
  line += "  " + paint(kBold, id);
  if (document.size() > 0) line += "  " + own_members(document);
  return line;
}

bool FeedPrinter::print(const FeedGroup& group) {
  if (style_ == Style::Etag) {
    fmt::print(out_, "{}\n", group.etag);
  } else {
    for (const std::string_view item : group.items) {
      fmt::print(out_, "{}\n", style_ == Style::Json ? std::string(item) : pretty(item));
    }
  }
  // The reader of a pipe wants each change when it happens, not a buffer full of them.
  return std::fflush(out_) == 0;
}

}  // namespace orrery::cli
