#include "feed/page_builder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "json/document_text.h"
#include "json/value.h"

namespace orrery::feed {
namespace {

constexpr std::string_view kLsnMember = R"(,"_lsn":)";

std::string_view operation_name(Version::Kind kind) {
  switch (kind) {
    case Version::Kind::Create:
      return "create";
    case Version::Kind::Replace:
      return "replace";
    case Version::Kind::Delete:
    case Version::Kind::Expire:
      return "delete";
  }
  return "replace";
}

/// The scalar that a component stands for.
json::Value scalar(const KeyComponent& component) {
  struct Visitor {
    json::Value operator()(Undefined) const { return {}; }
    json::Value operator()(Null) const { return json::Value::null(); }
    json::Value operator()(bool value) const { return json::Value::boolean(value); }
    json::Value operator()(double value) const {
      // Whole numbers are written as such, as documents have them.
      constexpr double kWholeMax = 9007199254740992.0;
      const bool whole = value > -kWholeMax && value < kWholeMax && std::trunc(value) == value &&
                         !(value == 0 && std::signbit(value));
      return whole ? json::Value::number(static_cast<std::int64_t>(value))
                   : json::Value::number(value);
    }
    json::Value operator()(const std::string& value) const { return json::Value::string(value); }
  };
  return std::visit(Visitor{}, component);
}

/// Calls visit(path, component) for each component of the key that is defined.
template <typename Visit>
void for_each_component(const PageRequest& request, const Version& version, Visit visit) {
  const auto* definition = request.container.partition_key;
  if (definition == nullptr) return;
  const auto key = PartitionKey::from_canonical(version.partition_key, definition->paths.size());
  ORRERY_ASSERT(key.has_value());
  for (std::size_t i = 0; i < key->size(); ++i) {
    const KeyComponent& component = key->components()[i];
    if (!std::holds_alternative<Undefined>(component)) visit(definition->paths[i], component);
  }
}

}  // namespace

PageBuilder::PageBuilder(const PageRequest& request, WorkBudget& work, std::string text)
    : request_(request), work_(work), text_(std::move(text)), begin_(text_.size()) {}

bool PageBuilder::full() const {
  return (request_.count_max && count_ >= *request_.count_max) ||
         text_.size() - begin_ >= request_.bytes_max;
}

void PageBuilder::open_group(Lsn lsn) {
  lsn_ = lsn;
  group_begin_ = text_.size();
  group_count_ = 0;
  group_ts_ = 0;
  char* at = std::ranges::copy(kLsnMember, suffix_.data()).out;
  at = std::to_chars(at, suffix_.data() + suffix_.size(), lsn.value).ptr;
  *at++ = '}';
  suffix_size_ = static_cast<std::size_t>(at - suffix_.data());
}

Result<> PageBuilder::add(const Version& version) {
  std::string_view shown = version.current;
  // A filter speaks about documents. In latest-version mode nothing is known of a deleted one, and
  // who asked for deletes must not miss one.
  if (request_.filter != nullptr && !(request_.mode == Mode::Latest && version.deletes())) {
    instead_.clear();
    ORRERY_TRY(const auto decision,
               request_.filter->decide(version.current, version.previous, instead_, work_));
    switch (decision) {
      case ItemFilter::Decision::Skip:
        return {};
      case ItemFilter::Decision::Keep:
        break;
      case ItemFilter::Decision::Replace:
        shown = instead_;
        break;
    }
  }
  if (count_ + group_count_ > 0) text_.push_back(',');
  if (request_.wrapped || request_.mode == Mode::AllVersions) {
    append_wrapped(version, shown);
  } else if (version.deletes()) {
    append_tombstone(version);
  } else {
    append_bare(version, shown);
  }
  ++group_count_;
  group_ts_ = std::max(group_ts_, version.ts);
  return {};
}

bool PageBuilder::close_group() {
  if (group_count_ == 0) return true;
  const bool fits = (!request_.count_max || count_ + group_count_ <= *request_.count_max) &&
                    text_.size() - begin_ <= request_.bytes_max;
  if (!fits && count_ > 0) {
    text_.resize(group_begin_);
    return false;
  }
  if (request_.mark_groups) {
    const std::size_t comma = count_ > 0 ? 1 : 0;
    groups_.push_back({lsn_, group_begin_ + comma, text_.size(), group_count_});
  }
  count_ += group_count_;
  last_lsn_ = lsn_;
  last_ts_ = std::max(last_ts_, group_ts_);
  return true;
}

void PageBuilder::finish(Page& page) {
  page.text = std::move(text_);
  page.count = count_;
  page.last_ts = last_ts_;
  page.groups = std::move(groups_);
}

void PageBuilder::append_number(std::uint64_t value) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text_.append(digits.data(), end);
}

void PageBuilder::append_bare(const Version&, std::string_view shown) {
  const std::string_view suffix(suffix_.data(), suffix_size_);
  if (!shown.starts_with('{')) {
    // A projection may yield anything; it gets the name that a query would give it.
    text_.append(R"({"$1":)").append(shown).append(suffix);
    return;
  }
  // The text is an object: its closing brace makes way for the member. No stored document has one
  // of that name.
  shown.remove_suffix(1);
  text_.append(shown).append(shown.size() == 1 ? suffix.substr(1) : suffix);
}

void PageBuilder::append_wrapped(const Version& version, std::string_view shown) {
  text_.append(R"({"current":)").append(shown.empty() ? "{}" : shown);
  text_.append(R"(,"metadata":{"operationType":")").append(operation_name(version.kind));
  text_.append(R"(","lsn":)");
  append_number(version.position.lsn.value);
  text_.append(R"(,"crts":)");
  append_number(static_cast<std::uint64_t>(version.ts));
  if (version.before != Lsn{} || version.kind == Version::Kind::Create) {
    text_.append(R"(,"previousImageLSN":)");
    append_number(version.before.value);
  }
  if (version.kind == Version::Kind::Expire) text_.append(R"(,"timeToLiveExpired":true)");
  if (version.deletes()) {
    text_.append(R"(,"id":)");
    json::append_quoted(text_, version.id);
    text_.append(R"(,"partitionKey":)");
    append_key_object(version);
  }
  text_.push_back('}');
  if (!version.previous.empty()) text_.append(R"(,"previous":)").append(version.previous);
  text_.push_back('}');
}

void PageBuilder::append_tombstone(const Version& version) {
  text_.append(R"({"id":)");
  json::append_quoted(text_, version.id);
  append_key_properties(version);
  text_.append(R"(,"_rid":")");
  Rid::document(request_.container.rid, version.number).append_text(text_);
  text_.append(R"(","_ts":)");
  append_number(static_cast<std::uint64_t>(version.ts));
  text_.append(R"(,"_deleted":true)").append(suffix_.data(), suffix_size_);
}

/// `,"tenant":"t1","place":{"city":"x"}`: where the document had them.
void PageBuilder::append_key_properties(const Version& version) {
  auto properties = json::Value::object();
  for_each_component(request_, version, [&](const auto& path, const KeyComponent& component) {
    if (path.size() == 1 && path[0] == "id") return;
    json::Value* place = &properties;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      if (place->find(path[i]) == nullptr) place->set_member(path[i], json::Value::object());
      place = place->find(path[i]);
      if (!place->is_object()) return;  // One path goes through the value of another.
    }
    place->set_member(path.back(), scalar(component));
  });
  if (properties.size() == 0) return;
  const std::string text = properties.to_text();
  text_.push_back(',');
  text_.append(text, 1, text.size() - 2);
}

/// `{"tenant":"t1","place/city":"x"}`
void PageBuilder::append_key_object(const Version& version) {
  auto object = json::Value::object();
  for_each_component(request_, version, [&](const auto& path, const KeyComponent& component) {
    std::string name;
    for (const std::string& part : path) {
      if (!name.empty()) name.push_back('/');
      name.append(part);
    }
    object.set_member(name, scalar(component));
  });
  object.append_to(text_);
}

}  // namespace orrery::feed
