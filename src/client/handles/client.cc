#include "orrery/client.h"

#include <algorithm>
#include <utility>

#include "base/header_name.h"
#include "client/exchange/pipeline.h"
#include "client/exchange/refusal.h"
#include "client/exchange/regions.h"
#include "client/handles/offer.h"
#include "client/handles/resource.h"
#include "protocol/wire/headers.h"

namespace orrery::client {

CosmosClient::CosmosClient(std::string endpoint, const Credential& credential,
                           ClientOptions options)
    : pipeline_(Pipeline::make(std::move(endpoint), credential, std::move(options))) {}

CosmosClient CosmosClient::from_connection_string(std::string_view text, ClientOptions options) {
  std::string endpoint;
  std::string key;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = part.substr(0, equals);
    const std::string_view value = part.substr(equals + 1);
    if (equal_ignoring_case(name, "AccountEndpoint")) endpoint = value;
    if (equal_ignoring_case(name, "AccountKey")) key = value;
    if (equal_ignoring_case(name, "DisableServerCertificateValidation") &&
        equal_ignoring_case(value, "True")) {
      options.verify_certificate = false;
    }
  }
  if (endpoint.empty() || key.empty()) {
    refuse_argument(
        "A connection string is AccountEndpoint=…;AccountKey=…; and one of the two is missing.");
  }
  return {std::move(endpoint), Credential::key(std::move(key)), std::move(options)};
}

const std::string& CosmosClient::endpoint() const { return pipeline_->endpoint(); }

Database CosmosClient::database(std::string id) const { return {pipeline_, std::move(id)}; }

Response<DatabaseProperties> CosmosClient::create_database(std::string_view id,
                                                           const CreateOptions& options) const {
  Call call{.method = "POST", .type = "dbs", .link = "", .list = true};
  call.headers.emplace_back(headers::kContentType.text, "application/json");
  call.body = R"({"id":)" + json_string(segment(id, "database")) + "}";
  call.writes = true;
  call.repeatable = false;
  if (options.throughput) add_throughput(call.headers, *options.throughput);
  Answer answer = pipeline_->send(call, options);
  auto properties = database_properties(body_of(answer));
  return respond(answer, std::move(properties));
}

Response<DatabaseProperties> CosmosClient::create_database_if_not_exists(
    std::string_view id, const CreateOptions& options) const {
  const Database handle = database(std::string(id));
  return create_if_missing(
      options, [&](const CreateOptions& now) { return handle.read(now); },
      [&](const CreateOptions& now) { return create_database(id, now); });
}

Pages<Page<DatabaseProperties>> CosmosClient::list_databases(const ListOptions& options) const {
  Call call{.type = "dbs", .link = "", .list = true};
  return list_pages(pipeline_, std::move(call), options, "Databases", database_properties);
}

Pages<Page<DatabaseProperties>> CosmosClient::query_databases(const Query& query,
                                                              const ListOptions& options) const {
  Call call{.type = "dbs", .link = "", .list = true};
  turn_into_query(call, query);
  return list_pages(pipeline_, std::move(call), options, "Databases", database_properties);
}

Response<AccountProperties> CosmosClient::read_account(const RequestOptions& options) const {
  Answer answer = pipeline_->send(Call{.type = "", .link = ""}, options);
  auto account = parse_account(answer.body);
  if (!account) throw failure_of(Failure::Network, account.error().message(), answer.diagnostics);
  return respond(answer, std::move(*account));
}

Pages<Page<Offer>> CosmosClient::list_offers(const ListOptions& options) const {
  Call call{.type = "offers", .link = "", .list = true};
  return list_pages(pipeline_, std::move(call), options, "Offers", offer_of);
}

}  // namespace orrery::client
