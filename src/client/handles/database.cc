#include "orrery/database.h"

#include <utility>

#include "client/exchange/pipeline.h"
#include "client/handles/offer.h"
#include "client/handles/resource.h"
#include "protocol/wire/headers.h"

namespace orrery::client {
namespace {

ContainerProperties container_properties(const json::Value& body) {
  return ContainerProperties::from_json(body.to_text());
}

}  // namespace

Database::Database(std::shared_ptr<Pipeline> pipeline, std::string id)
    : pipeline_(std::move(pipeline)), id_(std::move(id)) {
  segment(id_, "database");
}

Container Database::container(std::string id) const { return {pipeline_, id_, std::move(id)}; }

Response<ContainerProperties> Database::create_container(const ContainerProperties& properties,
                                                         const CreateOptions& options) const {
  segment(properties.id, "container");
  Call call{.method = "POST", .type = "colls", .link = "dbs/" + id_, .list = true};
  call.headers.emplace_back(headers::kContentType.text, "application/json");
  call.body = properties.to_json();
  call.writes = true;
  call.repeatable = false;
  if (options.throughput) add_throughput(call.headers, *options.throughput);
  Answer answer = pipeline_->send(call, options);
  auto created = ContainerProperties::from_json(answer.body);
  return respond(answer, std::move(created));
}

Response<ContainerProperties> Database::create_container_if_not_exists(
    const ContainerProperties& properties, const CreateOptions& options) const {
  const Container handle = container(properties.id);
  return create_if_missing(
      options, [&](const CreateOptions& now) { return handle.read(now); },
      [&](const CreateOptions& now) { return create_container(properties, now); });
}

Pages<Page<ContainerProperties>> Database::list_containers(const ListOptions& options) const {
  Call call{.type = "colls", .link = "dbs/" + id_, .list = true};
  return list_pages(pipeline_, std::move(call), options, "DocumentCollections",
                    container_properties);
}

Pages<Page<ContainerProperties>> Database::query_containers(const Query& query,
                                                            const ListOptions& options) const {
  Call call{.type = "colls", .link = "dbs/" + id_, .list = true};
  turn_into_query(call, query);
  return list_pages(pipeline_, std::move(call), options, "DocumentCollections",
                    container_properties);
}

Response<DatabaseProperties> Database::read(const RequestOptions& options) const {
  Answer answer = pipeline_->send(Call{.type = "dbs", .link = "dbs/" + id_}, options);
  auto properties = database_properties(body_of(answer));
  return respond(answer, std::move(properties));
}

Response<Nothing> Database::remove(const RequestOptions& options) const {
  Call call{.method = "DELETE", .type = "dbs", .link = "dbs/" + id_};
  call.writes = true;
  Answer answer = pipeline_->send(call, options);
  return respond(answer, Nothing{});
}

Response<Throughput> Database::read_throughput(const RequestOptions& options) const {
  const CallTime time(options);
  const auto properties = read(time.for_next_request());
  return read_throughput_of(*pipeline_, properties.value.rid, time.for_next_request());
}

Response<Throughput> Database::replace_throughput(const Throughput& throughput,
                                                  const RequestOptions& options) const {
  const CallTime time(options);
  const auto properties = read(time.for_next_request());
  return replace_throughput_of(*pipeline_, properties.value.rid, throughput,
                               time.for_next_request());
}

}  // namespace orrery::client
