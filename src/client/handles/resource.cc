#include "client/handles/resource.h"

#include "client/exchange/refusal.h"
#include "json/document_text.h"
#include "protocol/wire/headers.h"

namespace orrery::client {

void refuse_argument(const std::string& message) { throw failure_of(Failure::Argument, message); }

std::string_view segment(std::string_view id, std::string_view what) {
  if (id.empty()) refuse_argument("The id of the " + std::string(what) + " is empty.");
  if (id.find('/') != std::string_view::npos) {
    refuse_argument("The id '" + std::string(id) + "' of the " + std::string(what) +
                    " has a slash, with which nothing can be addressed.");
  }
  return id;
}

bool has_key(const RoutingMap& routing) {
  return !routing.definition().system_key && !routing.definition().paths.empty();
}

std::string key_json(const RoutingMap& routing, const PartitionKey& key) {
  return depends_on_container(key) && !has_key(routing) ? PartitionKey().json() : key.json();
}

FeedRange slice_of(const RoutingMap& routing, const PartitionKey& key) {
  return has_key(routing) ? routing.slice_of(key) : FeedRange{};
}

bool depends_on_container(const PartitionKey& key) {
  static const PartitionKey kNone = PartitionKey::none();
  return key == kNone;
}

std::string key_header(Pipeline& pipeline, const std::string& container, const PartitionKey& key,
                       const RequestOptions& options) {
  if (!depends_on_container(key)) return key.json();
  return key_json(*pipeline.routing(container, options), key);
}

PartitionKey key_in(const RoutingMap& routing, std::string_view document) {
  const auto value = json::Value::parse(document);
  if (!value || !value->is_object()) {
    refuse_argument("A document is a JSON object; only of one can the partition key be read.");
  }
  const auto key = routing.keys().key_of(*value);
  const auto& components = key.components();
  const bool is_missing =
      components.empty() ||
      (components.size() == 1 && std::holds_alternative<Undefined>(components.front()));
  return is_missing ? PartitionKey::none() : PartitionKey::from_json(key.to_json());
}

std::string json_string(std::string_view text) {
  std::string out;
  json::append_quoted(out, text);
  return out;
}

json::Value body_of(const Answer& answer) {
  auto body = json::Value::parse(answer.body);
  if (body && body->is_object()) return std::move(*body);
  CosmosException::Details details;
  details.status = answer.status;
  details.activity_id = answer.activity_id;
  details.diagnostics = answer.diagnostics.to_string();
  throw CosmosException("The body of the answer is no JSON object.", std::move(details));
}

std::string text_at(const json::Value& object, std::string_view member) {
  const json::Value value = object.member(member);
  return value.is_undefined() ? std::string() : value.to_text();
}

DatabaseProperties database_properties(const json::Value& body) {
  return {body.member("id").string_or_empty(), body.member("_rid").string_or_empty(),
          body.member("_etag").string_or_empty()};
}

std::string query_body(const Query& query) {
  std::string body = R"({"query":)";
  json::append_quoted(body, query.text);
  body += R"(,"parameters":[)";
  for (const QueryParameter& parameter : query.parameters) {
    if (body.back() != '[') body.push_back(',');
    body += R"({"name":)";
    json::append_quoted(body, parameter.name);
    body.append(R"(,"value":)").append(parameter.json).push_back('}');
  }
  return body += "]}";
}

void turn_into_query(Call& call, const Query& query) {
  call.method = "POST";
  call.body = query_body(query);
  call.headers.emplace_back(headers::kContentType.text, "application/query+json");
  call.headers.emplace_back(headers::kIsQuery.text, "True");
}

Answer list_page(Pipeline& pipeline, Call call, const ListOptions& options,
                 const std::string& continuation, std::string_view member,
                 const std::function<void(const json::Value&)>& each) {
  if (options.page_size) {
    call.headers.emplace_back(headers::kMaxItemCount.text, std::to_string(*options.page_size));
  }
  if (!continuation.empty()) call.headers.emplace_back(headers::kContinuation.text, continuation);
  Answer answer = pipeline.send(call, options);
  const json::Value body = body_of(answer);
  const json::Value array = body.member(member);
  for (json::Reader reader(array); reader.next();) each(reader.value());
  return answer;
}

}  // namespace orrery::client
