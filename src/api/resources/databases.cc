#include <fmt/format.h>

#include "api/handlers.h"
#include "api/reply.h"
#include "api/resources/resource_list.h"
#include "api/resources/throughput.h"
#include "api/target.h"
#include "json/document_text.h"
#include "protocol/wire/resource_body.h"

namespace orrery::api::databases {
namespace {

std::string to_json(const catalog::Database& database) {
  std::string body = "{\"id\":";
  json::append_quoted(body, database.id);
  body += fmt::format(",\"_rid\":\"{}\",\"_self\":\"{}\",\"_etag\":", database.rid.text(),
                      database.self());
  json::append_quoted(body, database.etag().text());
  body += fmt::format(",\"_colls\":\"colls/\",\"_users\":\"users/\",\"_ts\":{}}}", database.ts);
  return body;
}

http::Response show(Context& context, int status, const catalog::Database& database) {
  auto response = reply(context, status, to_json(database));
  response.add(headers::kEtag.text, database.etag().text());
  response.add(headers::kResourceQuota.text, "databases=100;");
  return response;
}

}  // namespace

Async<http::Response> create(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto body, parse_resource_body(context.request.body));
  ORRERY_CO_TRY(auto id, parse_resource_id(body));
  ORRERY_CO_TRY(auto throughput, requested_throughput(context));
  ORRERY_CO_TRY(auto database, co_await run_blocking(services.blocking, [&] {
                  return services.catalog.create_database(id, throughput);
                }));
  context.charge = kMetadataWrite;
  co_return show(context, 201, *database);
}

Result<http::Response> list(Services& services, Context& context) {
  ORRERY_TRY(check_consistency(context));
  return list_page(
      context, "", "Databases",
      [&](std::string_view after, std::size_t count) {
        return services.catalog.databases(after, count);
      },
      to_json, [](const catalog::Database& database) { return database.rid; });
}

Result<http::Response> read(Services&, Context& context) {
  ORRERY_TRY(check_consistency(context));
  const auto& database = context.target.database;
  const auto condition = context.header(headers::kIfNoneMatch);
  if (!condition.empty() && database->etag().matches(condition)) {
    auto response = reply(context, 304);
    response.add(headers::kEtag.text, database->etag().text());
    return response;
  }
  return show(context, 200, *database);
}

Async<http::Response> remove(Services& services, Context& context) {
  const auto& database = context.target.database;
  ORRERY_CO_TRY(co_await run_blocking(services.blocking, [&] {
    return services.catalog.delete_database(database->rid, context.header(headers::kIfMatch));
  }));
  context.charge = kMetadataWrite;
  co_return reply(context, 204);
}

}  // namespace orrery::api::databases
