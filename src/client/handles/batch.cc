#include "client/handles/batch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "client/handles/resource.h"
#include "json/document_text.h"
#include "json/value.h"
#include "orrery/container.h"
#include "protocol/wire/headers.h"

namespace orrery::client {
namespace {

std::string_view name_of(PatchOperation::Kind kind) {
  switch (kind) {
    case PatchOperation::Kind::Add:
      return "add";
    case PatchOperation::Kind::Set:
      return "set";
    case PatchOperation::Kind::Replace:
      return "replace";
    case PatchOperation::Kind::Remove:
      return "remove";
    case PatchOperation::Kind::Increment:
      return "incr";
    case PatchOperation::Kind::Move:
      return "move";
  }
  return "";
}

std::string_view name_of(ItemOperation::Kind kind) {
  switch (kind) {
    case ItemOperation::Kind::Create:
      return "Create";
    case ItemOperation::Kind::Upsert:
      return "Upsert";
    case ItemOperation::Kind::Read:
      return "Read";
    case ItemOperation::Kind::Replace:
      return "Replace";
    case ItemOperation::Kind::Delete:
      return "Delete";
    case ItemOperation::Kind::Patch:
      return "Patch";
  }
  return "";
}

void append_member(std::string& body, std::string_view name, std::string_view text) {
  body.append(",\"").append(name).append("\":");
  json::append_quoted(body, text);
}

std::string number_text(json::Number number) {
  std::string text;
  json::append_number(text, number);
  return text;
}

ItemResult result_of(const json::Value& element) {
  const auto number = [&](std::string_view name) {
    const json::Value value = element.member(name);
    // Whatever a server says, it stays a number that others can hold.
    return value.is_number() ? std::clamp(value.as_number().real, 0.0, 1e9) : 0;
  };
  ItemResult result;
  result.status = static_cast<int>(number("statusCode"));
  result.sub_status = static_cast<int>(number("subStatusCode"));
  result.etag = element.member("eTag").string_or_empty();
  result.request_charge = number("requestCharge");
  if (const json::Value body = element.member("resourceBody"); body.is_object()) {
    result.json = body.to_text();
  }
  result.message = element.member("message").string_or_empty();
  if (element.member("retryAfterMilliseconds").is_number()) {
    result.retry_after =
        std::chrono::milliseconds(static_cast<std::int64_t>(number("retryAfterMilliseconds")));
  }
  return result;
}

}  // namespace

PatchOperation PatchOperation::add(std::string path, JsonText value) {
  return {Kind::Add, std::move(path), std::move(value).take(), {}};
}
PatchOperation PatchOperation::set(std::string path, JsonText value) {
  return {Kind::Set, std::move(path), std::move(value).take(), {}};
}
PatchOperation PatchOperation::replace(std::string path, JsonText value) {
  return {Kind::Replace, std::move(path), std::move(value).take(), {}};
}
PatchOperation PatchOperation::remove(std::string path) {
  return {Kind::Remove, std::move(path), {}, {}};
}
PatchOperation PatchOperation::increment(std::string path, double by) {
  if (!std::isfinite(by)) refuse_argument("A value can only be increased by a finite number.");
  return {Kind::Increment, std::move(path), number_text(json::Number::of(by)), {}};
}
PatchOperation PatchOperation::increment(std::string path, std::int64_t by) {
  return {Kind::Increment, std::move(path), number_text(json::Number::of(by)), {}};
}
PatchOperation PatchOperation::move(std::string from, std::string path) {
  return {Kind::Move, std::move(path), {}, std::move(from)};
}

std::string Patch::to_json() const {
  std::string body = "{";
  if (!condition.empty()) {
    body += R"("condition":)";
    json::append_quoted(body, condition);
    body.push_back(',');
  }
  body += R"("operations":[)";
  for (const PatchOperation& operation : operations) {
    if (body.back() != '[') body.push_back(',');
    body.append(R"({"op":")").append(name_of(operation.kind)).push_back('"');
    append_member(body, "path", operation.path);
    if (operation.kind == PatchOperation::Kind::Move) append_member(body, "from", operation.from);
    if (!operation.json.empty()) body.append(R"(,"value":)").append(operation.json);
    body.push_back('}');
  }
  return body += "]}";
}

ItemOperation ItemOperation::create(JsonText document) {
  ItemOperation operation;
  operation.kind = Kind::Create;
  operation.json = std::move(document).take();
  return operation;
}
ItemOperation ItemOperation::upsert(JsonText document) {
  ItemOperation operation;
  operation.kind = Kind::Upsert;
  operation.json = std::move(document).take();
  return operation;
}
ItemOperation ItemOperation::read(std::string id) {
  ItemOperation operation;
  operation.kind = Kind::Read;
  operation.id = std::move(id);
  return operation;
}
ItemOperation ItemOperation::replace(std::string id, JsonText document) {
  ItemOperation operation;
  operation.kind = Kind::Replace;
  operation.id = std::move(id);
  operation.json = std::move(document).take();
  return operation;
}
ItemOperation ItemOperation::remove(std::string id) {
  ItemOperation operation;
  operation.kind = Kind::Delete;
  operation.id = std::move(id);
  return operation;
}
ItemOperation ItemOperation::patch(std::string id, const client::Patch& patch) {
  ItemOperation operation;
  operation.kind = Kind::Patch;
  operation.id = std::move(id);
  operation.json = patch.to_json();
  return operation;
}
ItemOperation& ItemOperation::with_if_match(std::string etag) {
  if_match = std::move(etag);
  return *this;
}
ItemOperation& ItemOperation::with_partition_key(PartitionKey key) {
  partition_key = std::move(key);
  return *this;
}

std::size_t BulkResponse::failed() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(results, [](const ItemResult& result) { return !result.ok(); }));
}

void append_operation(std::string& body, const ItemOperation& operation,
                      std::string_view key_json) {
  const auto name = name_of(operation.kind);
  const bool is_new = operation.kind == ItemOperation::Kind::Create ||
                      operation.kind == ItemOperation::Kind::Upsert;
  const bool has_body =
      operation.kind != ItemOperation::Kind::Read && operation.kind != ItemOperation::Kind::Delete;
  if (!is_new && operation.id.empty()) {
    refuse_argument("The operation " + std::string(name) + " needs the id of its document.");
  }
  if (has_body && operation.json.empty()) {
    refuse_argument("The operation " + std::string(name) + " needs its JSON.");
  }
  body.append(R"({"operationType":")").append(name).push_back('"');
  if (!is_new) append_member(body, "id", operation.id);
  if (!key_json.empty()) append_member(body, "partitionKey", key_json);
  if (!operation.if_match.empty()) append_member(body, "ifMatch", operation.if_match);
  if (!operation.if_none_match.empty()) append_member(body, "ifNoneMatch", operation.if_none_match);
  if (has_body) body.append(R"(,"resourceBody":)").append(operation.json);
  body.push_back('}');
}

std::vector<ItemResult> results_of(const Answer& answer, std::size_t count) {
  std::vector<ItemResult> results;
  results.reserve(count);
  const auto body = json::Value::parse(answer.body);
  if (body) {
    for (json::Reader reader(*body); reader.next();) results.push_back(result_of(reader.value()));
  }
  if (results.size() == count) return results;
  CosmosException::Details details;
  details.status = answer.status;
  details.activity_id = answer.activity_id;
  details.diagnostics = answer.diagnostics.to_string();
  throw CosmosException("The answer has not one result for each of the operations.",
                        std::move(details));
}

bool is_repeatable(const ItemOperation& operation) {
  switch (operation.kind) {
    case ItemOperation::Kind::Read:
      return true;
    case ItemOperation::Kind::Upsert:
    case ItemOperation::Kind::Replace:
    case ItemOperation::Kind::Delete:
      // The etag that it waits for would be gone the second time.
      return operation.if_match.empty();
    case ItemOperation::Kind::Create:
    case ItemOperation::Kind::Patch:
      return false;
  }
  return false;
}

BatchResponse Container::execute_batch(const std::vector<ItemOperation>& operations,
                                       const PartitionKey& key,
                                       const RequestOptions& options) const {
  const CallTime time(options);
  Call call{.method = "POST", .type = "docs", .link = link_, .list = true};
  call.headers = {
      {std::string(headers::kContentType.text), "application/json"},
      {std::string(headers::kIsBatchRequest.text), "True"},
      {std::string(headers::kBatchAtomic.text), "True"},
      {std::string(headers::kPartitionKey.text),
       key_header(*pipeline_, link_, key, time.for_next_request())},
  };
  call.container = link_;
  call.writes = true;
  call.repeatable = std::ranges::all_of(operations, is_repeatable);
  call.body = "[";
  for (const ItemOperation& operation : operations) {
    if (call.body.size() > 1) call.body.push_back(',');
    append_operation(call.body, operation,
                     operation.partition_key ? operation.partition_key->json() : std::string());
  }
  call.body += "]";
  Answer answer = pipeline_->send(call, time.for_next_request());
  BatchResponse response;
  response.results = results_of(answer, operations.size());
  static_cast<ResponseInfo&>(response) = std::move(static_cast<ResponseInfo&>(answer));
  return response;
}

}  // namespace orrery::client
