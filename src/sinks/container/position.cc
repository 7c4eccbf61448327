#include "sinks/container/position.h"

#include <algorithm>
#include <span>

#include "json/document_text.h"
#include "json/value.h"

namespace orrery::sinks {
namespace {

constexpr std::string_view kIdPrefix = "orrery.position.";
constexpr std::string_view kMember = "orreryPosition";

std::optional<std::uint64_t> number_at(const json::Value& object, std::string_view name) {
  const json::Value value = object.member(name);
  if (!value.is_number() || !value.as_number().is_integer) return std::nullopt;
  return static_cast<std::uint64_t>(value.as_number().integer);
}

void append_member(std::string& text, std::string_view name, std::string_view value) {
  text.append(text.back() == '{' ? "\"" : ",\"").append(name).append("\":");
  json::append_quoted(text, value);
}
void append_member(std::string& text, std::string_view name, std::uint64_t value) {
  text.append(text.back() == '{' ? "\"" : ",\"").append(name).append("\":");
  text.append(std::to_string(value));
}

/// Puts `leaf` at `path`, making objects on the way, unless the path has a value.
void put(json::Value& object, std::span<const std::string> path, json::Value leaf) {
  if (path.empty() || !object.is_object()) return;
  json::Value* there = object.find(path.front());
  if (path.size() == 1) {
    if (there == nullptr) object.set_member(path.front(), std::move(leaf));
    return;
  }
  if (there == nullptr) {
    object.set_member(path.front(), json::Value::object());
    there = object.find(path.front());
  }
  put(*there, path.subspan(1), std::move(leaf));
}

}  // namespace

std::string PositionFormat::ledger_id() const { return std::string(kIdPrefix) + group_; }

std::string PositionFormat::id_of(const client::FeedRange& area) const {
  return ledger_id() + "." + area.min + "-" + area.max;
}

std::string PositionFormat::document(const std::string& id, const PartitionKey* key,
                                     std::string_view state) const {
  json::Value document = json::Value::object();
  document.set_member("id", json::Value::string_at(id));
  // Kept in memory until the text is written: values refer to it.
  const std::string components = key != nullptr ? key->to_json() : "[]";
  const json::Value values = json::Value::of_checked(components);
  for (std::size_t i = 0; i < definition_.paths.size(); ++i) {
    json::Value value = values.element(i);
    // Undefined is written {} in a key, and not at all in a document.
    if (!value.is_undefined() && !value.is_object()) {
      put(document, definition_.paths[i], std::move(value));
    }
  }
  for (const auto& path : unique_paths_) {
    const bool in_key = std::ranges::find(definition_.paths, path) != definition_.paths.end();
    if (!in_key) put(document, path, json::Value::string_at(id));
  }
  // Never expires, whatever the container says.
  document.set_member("ttl", json::Value::number(std::int64_t{-1}));
  document.set_member(kMember, json::Value::of_checked(state));
  return document.to_text();
}

std::string PositionFormat::text_of(const client::FeedRange& area, const PartitionKey& key,
                                    const Position& position) const {
  std::string state = "{";
  append_member(state, "group", group_);
  append_member(state, "min", area.min);
  append_member(state, "max", area.max);
  append_member(state, "epoch", position.epoch);
  append_member(state, "to", position.applied.lsn);
  if (!position.applied.within.empty()) append_member(state, "within", position.applied.within);
  state += "}";
  return document(id_of(area), &key, state);
}

std::optional<Position> PositionFormat::parse(std::string_view document) {
  const auto value = json::Value::of_checked(document);
  const json::Value state = value.member(kMember);
  const auto epoch = number_at(state, "epoch");
  const auto to = number_at(state, "to");
  if (!epoch || !to) return std::nullopt;
  return Position{{*to, state.member("within").string_or_empty()},
                  *epoch,
                  value.member("_etag").string_or_empty()};
}

std::string PositionFormat::ledger_text(std::string_view state) const {
  std::string with_group = "{";
  append_member(with_group, "group", group_);
  if (state.size() > 2) with_group.append(",").append(state.substr(1, state.size() - 2));
  return document(ledger_id(), nullptr, with_group + "}");
}

bool PositionFormat::is_position(std::string_view document) {
  // Cheap for everything else: the whole text is looked at only when the name occurs in it.
  if (document.find(kMember) == std::string_view::npos) return false;
  const auto value = json::Value::of_checked(document);
  return value.member(kMember).is_object() &&
         value.member("id").string_or_empty().starts_with(kIdPrefix);
}

bool PositionFormat::is_ours(std::string_view document) const {
  return is_position(document) &&
         json::Value::of_checked(document).member(kMember).member("group").is_string(group_);
}

// ── Ledger ───────────────────────────────────────────────────────────────────────────────────────

std::string Ledger::to_json() const {
  std::string text = "{";
  append_member(text, "source", source_rid);
  text += ",\"areas\":[";
  for (const Entry& entry : entries) {
    if (text.back() != '[') text += ',';
    text += '{';
    append_member(text, "min", entry.area.min);
    append_member(text, "max", entry.area.max);
    append_member(text, "epoch", entry.epoch);
    text += '}';
  }
  return text += "]}";
}

std::optional<Ledger> Ledger::parse(std::string_view document) {
  const auto value = json::Value::of_checked(document);
  const json::Value state = value.member(kMember);
  const json::Value areas = state.member("areas");
  if (!areas.is_array()) return std::nullopt;
  Ledger ledger;
  ledger.source_rid = state.member("source").string_or_empty();
  for (json::Reader reader(areas); reader.next();) {
    const json::Value area = reader.value();
    const auto epoch = number_at(area, "epoch");
    if (!epoch) return std::nullopt;
    ledger.entries.push_back(
        {{area.member("min").string_or_empty(), area.member("max").string_or_empty()}, *epoch});
  }
  return ledger;
}

bool Ledger::is_superseded(const client::FeedRange& area, std::uint64_t epoch) const {
  return std::ranges::any_of(entries, [&](const Entry& entry) {
    return entry.area.overlaps(area) && entry.epoch > epoch;
  });
}

std::vector<Ledger::Entry> Ledger::predecessors_of(const client::FeedRange& area) const {
  std::vector<Entry> found;
  for (const Entry& entry : entries) {
    if (entry.area.overlaps(area) && entry.area != area) found.push_back(entry);
  }
  return found;
}

const Ledger::Entry* Ledger::find(const client::FeedRange& area) const {
  const auto found = std::ranges::find(entries, area, &Entry::area);
  return found == entries.end() ? nullptr : &*found;
}

void Ledger::put(const client::FeedRange& area, std::uint64_t epoch) {
  const auto found = std::ranges::find(entries, area, &Entry::area);
  if (found == entries.end()) {
    entries.push_back({area, epoch});
  } else {
    found->epoch = epoch;
  }
}

}  // namespace orrery::sinks
