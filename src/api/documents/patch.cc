#include "api/documents/patch.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "api/documents/document_request.h"
#include "api/query/query_request.h"
#include "base/work_budget.h"
#include "executor/container_settings.h"
#include "json/patch.h"
#include "json/value.h"
#include "protocol/wire/resource_body.h"
#include "query/eval/predicate.h"

namespace orrery::api {
namespace {

/// A condition is asked by the writer of its partition, which nobody else can use meanwhile.
constexpr std::chrono::milliseconds kConditionTimeMax{100};

/// Of a document without its system properties, as a client could send it.
constexpr std::size_t kDocumentBytesMax = 2 << 20;

constexpr std::array<std::string_view, 6> kSystemMembers = {"_rid",         "_self", "_etag",
                                                            "_attachments", "_ts",   "_lsn"};

/// Whether one is the other, or lies below it.
bool is_on_one_way(const json::Pointer& path, const json::MemberPath& key) {
  const std::size_t common = std::min(path.size(), key.size());
  return std::equal(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(common), key.begin());
}

Result<> check_path(const json::Pointer& path, const ContainerDefinition& definition) {
  const std::string& top = path.front();
  if (top == "id") {
    return bad_request("the member 'id' cannot be patched: it names the document.");
  }
  if (std::ranges::find(kSystemMembers, top) != kSystemMembers.end()) {
    return bad_request(fmt::format("the system property '{}' cannot be patched.", top));
  }
  for (const json::MemberPath& key : definition.partition_key().paths) {
    if (!is_on_one_way(path, key)) continue;
    return bad_request(fmt::format(
        "the partition key path '/{}' cannot be patched, nor what is above or below it.",
        fmt::join(key, "/")));
  }
  return {};
}

class DocumentPatch {
 public:
  DocumentPatch(catalog::ContainerPtr container, json::Patch patch,
                std::optional<query::Predicate> condition)
      : container_(std::move(container)),
        patch_(std::move(patch)),
        condition_(std::move(condition)) {}

  Result<partition::NewVersion> apply(std::string_view text) const {
    json::Value document = json::Value::of_checked(text);
    if (condition_) {
      WorkBudget work({.total_time_max = kConditionTimeMax});
      ORRERY_TRY(const bool holds, condition_->is_true_of(document, &work));
      if (!holds) {
        return Error(ErrorCode::PreconditionFailed,
                     "One of the specified pre-condition is not met. The condition of the patch "
                     "does not hold for the document.");
      }
    }
    const ContainerDefinition& definition = container_->definition;
    ORRERY_TRY(patch_.check_paths(
        [&](const json::Pointer& path) { return check_path(path, definition); }));
    ORRERY_TRY(patch_.apply(document));
    ORRERY_TRY(auto parsed, parse_document(definition, document.to_text(), std::nullopt));
    // The client sent no system properties, so they follow what the patch added.
    parsed.version.system_places = {};
    // The brace that ends it counts too.
    if (const std::size_t size = parsed.version.open_text.size() + 1; size > kDocumentBytesMax) {
      return Error(ErrorCode::RequestTooLarge,
                   fmt::format("Request size is too large: with this patch the document would have "
                               "{} bytes; the limit is {}.",
                               size, kDocumentBytesMax));
    }
    return std::move(parsed.version);
  }

 private:
  catalog::ContainerPtr container_;
  json::Patch patch_;
  std::optional<query::Predicate> condition_;
};

Result<std::optional<query::Predicate>> read_condition(const json::Value& body,
                                                       const ContainerDefinition& definition) {
  const json::Value condition = body.member("condition");
  if (condition.is_undefined() || condition.is_null()) return std::optional<query::Predicate>();
  if (!condition.is_string()) return bad_request("'condition' of a patch must be a string.");
  std::string buffer;
  ORRERY_TRY(auto predicate,
             query::Predicate::parse_condition(condition.as_string(buffer),
                                               executor::query_settings(definition)));
  return std::optional(std::move(predicate));
}

}  // namespace

Result<Change> read_patch(const catalog::ContainerPtr& container, std::string_view body) {
  ORRERY_TRY(const auto value, json::Value::parse(body));
  if (!value.is_object() && !value.is_array()) {
    return bad_request(
        "The body of a patch must be an object with 'operations', or an array of operations.");
  }
  ORRERY_TRY(auto patch, json::Patch::parse(value.is_array() ? value : value.member("operations")));
  ORRERY_TRY(auto condition, read_condition(value, container->definition));
  auto made =
      std::make_shared<const DocumentPatch>(container, std::move(patch), std::move(condition));
  return Change([made](std::string_view text) { return made->apply(text); });
}

}  // namespace orrery::api
