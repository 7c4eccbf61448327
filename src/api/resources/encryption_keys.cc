#include <fmt/format.h>

#include "api/handlers.h"
#include "api/reply.h"
#include "api/resources/resource_list.h"
#include "api/target.h"
#include "protocol/container/client_encryption.h"

namespace orrery::api::encryption_keys {
namespace {

Json to_wire(const catalog::EncryptionKey& key) {
  Json body = key.members;
  body["_rid"] = key.rid.text();
  body["_self"] = key.self();
  body["_etag"] = key.etag().text();
  body["_ts"] = key.ts;
  return body;
}

http::Response show(Context& context, int status, const catalog::EncryptionKey& key) {
  auto response = reply(context, status, to_wire(key).dump());
  response.add(headers::kEtag.text, key.etag().text());
  return response;
}

Result<catalog::EncryptionKeyPtr> find(const Services& services, const Context& context) {
  const ResourcePath& path = context.path;
  const auto& database = context.target.database;
  const std::string& name = path.names[1];
  catalog::EncryptionKeyPtr key;
  if (!is_rid_path(services, path)) {
    key = services.catalog.encryption_keys().find(database->id, name);
  } else if (const auto rid = Rid::parse(name);
             rid && rid->kind() == RidKind::EncryptionKey && rid->database_rid() == database->rid) {
    key = services.catalog.encryption_keys().find(*rid);
  }
  if (!key) {
    return Error(ErrorCode::NotFound,
                 fmt::format("Resource Not Found. There is no client encryption key '{}' in "
                             "database '{}'.",
                             name, database->id));
  }
  return key;
}

}  // namespace

Async<http::Response> create(Services& services, Context& context) {
  const auto& database = context.target.database;
  ORRERY_CO_TRY(auto members, parse_encryption_key(context.request.body));
  ORRERY_CO_TRY(const auto key, co_await run_blocking(services.blocking, [&] {
                  return services.catalog.encryption_keys().create(database->rid,
                                                                   std::move(members));
                }));
  context.charge = kMetadataWrite;
  co_return show(context, 201, *key);
}

Result<http::Response> list(Services& services, Context& context) {
  ORRERY_TRY(check_consistency(context));
  const auto& database = context.target.database;
  return list_page(
      context, database->rid.text(), "ClientEncryptionKeys",
      [&](std::string_view after, std::size_t count) {
        return services.catalog.encryption_keys().list(database->rid, after, count);
      },
      [](const catalog::EncryptionKey& key) { return to_wire(key).dump(); },
      [](const catalog::EncryptionKey& key) { return key.rid; });
}

Result<http::Response> read(Services& services, Context& context) {
  ORRERY_TRY(check_consistency(context));
  ORRERY_TRY(const auto key, find(services, context));
  const auto condition = context.header(headers::kIfNoneMatch);
  if (!condition.empty() && key->etag().matches(condition)) {
    auto response = reply(context, 304);
    response.add(headers::kEtag.text, key->etag().text());
    return response;
  }
  return show(context, 200, *key);
}

Async<http::Response> replace(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto key, find(services, context));
  ORRERY_CO_TRY(auto members, parse_encryption_key(context.request.body));
  if (members["id"] != key->id) {
    co_return Error(
        ErrorCode::BadRequest,
        fmt::format("The id of a client encryption key cannot change from '{}' to '{}'.", key->id,
                    members["id"].get<std::string>()));
  }
  ORRERY_CO_TRY(const auto replaced, co_await run_blocking(services.blocking, [&] {
                  return services.catalog.encryption_keys().replace(
                      key->rid, context.header(headers::kIfMatch), std::move(members));
                }));
  context.charge = kMetadataWrite;
  co_return show(context, 200, *replaced);
}

}  // namespace orrery::api::encryption_keys
