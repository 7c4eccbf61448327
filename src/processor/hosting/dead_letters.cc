#include "processor/hosting/dead_letters.h"

#include <memory>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "json/document_text.h"
#include "json/value.h"
#include "processor/leases/lease.h"

namespace orrery::processor {

namespace {

void append_member(std::string& out, std::string_view name, std::string_view text) {
  out += ",";
  json::append_quoted(out, name);
  out += ":";
  json::append_quoted(out, text);
}

std::string text_at(const json::Value& document, std::string_view name) {
  const json::Value member = document.member(name);
  std::string buffer;
  if (member.is_string()) return std::string(member.as_string(buffer));
  return member.is_undefined() ? std::string() : member.to_text();
}

/// A container of dead letters. Thread-safe.
class ContainerKeeper {
 public:
  explicit ContainerKeeper(client::Container container) : container_(std::move(container)) {}

  void keep(const DeadLetter& letter) {
    const std::string text = letter.to_json();
    const json::Value value = json::Value::of_checked(text);
    client::PartitionKey key;
    for (const std::string& path : key_paths()) {
      const std::string component = text_at(value, std::string_view(path).substr(1));
      component.empty() ? key.append_undefined() : key.append(std::string_view(component));
    }
    container_.upsert_item(text, key);
  }

 private:
  std::vector<std::string> key_paths() {
    const std::scoped_lock lock(mutex_);
    if (!key_paths_) key_paths_ = container_.read().value.partition_key_paths;
    return *key_paths_;
  }

  client::Container container_;
  std::mutex mutex_;  // Guards what follows.
  std::optional<std::vector<std::string>> key_paths_;
};

}  // namespace

std::string dead_letter_id(const DeadLetter& letter) {
  const json::Value document = json::Value::of_checked(letter.document);
  std::string id =
      fmt::format("{}:{}:{}", letter.range, text_at(document, "_lsn"), text_at(document, "id"));
  // Replaces characters that an id must not have.
  for (char& c : id) {
    if (c == '/' || c == '\\' || c == '?' || c == '#') c = '_';
  }
  return id;
}

std::string DeadLetter::to_json() const {
  std::string text = "{\"id\":";
  json::append_quoted(text, dead_letter_id(*this));
  text += ",\"document\":";
  text += document;
  append_member(text, "range", range);
  append_member(text, "etagBefore", etag_before);
  text += fmt::format(",\"attempts\":{}", attempts);
  append_member(text, "error", error);
  append_member(text, "host", host);
  append_member(text, "time", format_timestamp(time, 3));
  text += "}";
  return text;
}

std::function<void(const DeadLetter&)> dead_letter_keeper(const ChangeFeedHostOptions& options) {
  if (options.dead_letter_callback) return options.dead_letter_callback;
  if (!options.dead_letter_container) return nullptr;
  return [keeper = std::make_shared<ContainerKeeper>(*options.dead_letter_container)](
             const DeadLetter& letter) { keeper->keep(letter); };
}

}  // namespace orrery::processor
