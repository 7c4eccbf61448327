#include "orrery/container.h"

#include <utility>

#include "client/exchange/call_time.h"
#include "client/exchange/pipeline.h"
#include "client/handles/item_list.h"
#include "client/handles/offer.h"
#include "client/handles/resource.h"
#include "protocol/wire/headers.h"

namespace orrery::client {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    if (!list.empty()) list.push_back(',');
    list += name;
  }
  return list;
}

void add_conditions(HeaderList& headers, const ItemOptions& options) {
  if (!options.if_match.empty()) headers.emplace_back(headers::kIfMatch.text, options.if_match);
  if (!options.if_none_match.empty()) {
    headers.emplace_back(headers::kIfNoneMatch.text, options.if_none_match);
  }
}

/// One document: where it is, and under which conditions.
class ItemCall {
 public:
  ItemCall(std::string method, const std::string& container, const PartitionKey& key,
           const ItemOptions& options)
      : key_(key), options_(options) {
    call_.method = std::move(method);
    call_.type = "docs";
    call_.link = container;
    call_.container = container;
    add_conditions(call_.headers, options);
  }

  ItemCall& on(std::string_view id) {
    call_.link.append("/docs/").append(segment(id, "document"));
    return *this;
  }
  ItemCall& in_list() {
    call_.list = true;
    return *this;
  }
  ItemCall& upserting() {
    call_.headers.emplace_back(headers::kIsUpsert.text, "True");
    return *this;
  }
  ItemCall& with_body(std::string_view body, std::string_view type = "application/json") {
    call_.body = body;
    call_.headers.emplace_back(headers::kContentType.text, type);
    return *this;
  }
  /// `repeatable`: what is done twice comes to the same as once. Never so under a condition, which
  /// the first time would have made untrue.
  ItemCall& writing(bool repeatable) {
    call_.writes = true;
    call_.repeatable = repeatable && options_.if_match.empty();
    if (!options_.return_content) {
      call_.headers.emplace_back(headers::kPrefer.text, "return=minimal");
    }
    if (!options_.pre_triggers.empty()) {
      call_.headers.emplace_back(headers::kPreTriggerInclude.text, joined(options_.pre_triggers));
    }
    if (!options_.post_triggers.empty()) {
      call_.headers.emplace_back(headers::kPostTriggerInclude.text, joined(options_.post_triggers));
    }
    return *this;
  }

  Answer send(Pipeline& pipeline) {
    if (!depends_on_container(key_)) {
      call_.headers.emplace_back(headers::kPartitionKey.text, key_.json());
      return pipeline.send(call_, options_);
    }
    const CallTime time(options_);
    call_.headers.emplace_back(
        headers::kPartitionKey.text,
        key_header(pipeline, call_.container, key_, time.for_next_request()));
    return pipeline.send(call_, time.for_next_request());
  }
  Response<std::string> send_for_document(Pipeline& pipeline) {
    Answer answer = send(pipeline);
    std::string document = std::move(answer.body);
    return respond(answer, std::move(document));
  }

 private:
  Call call_;
  const PartitionKey& key_;
  const ItemOptions& options_;
};

/// The sub-status of a key that is not the one in the document.
constexpr int kKeyMismatch = 1001;

/// `write` with the key that the document has. The cached routing may be of a container that had
/// the name before: where the server finds another key in the document, it is fetched anew, once.
template <typename Write>
Response<std::string> with_key_of(Pipeline& pipeline, const std::string& container,
                                  const JsonText& document, const ItemOptions& options,
                                  Write write) {
  const CallTime time(options);
  ItemOptions now = options;
  const auto attempt = [&](const RoutingMapPtr& routing) {
    const PartitionKey key = key_in(*routing, document.view());
    set_request_options(now, time.for_next_request());
    return write(key, now);
  };
  const auto routing = pipeline.routing(container, time.for_next_request());
  try {
    return attempt(routing);
  } catch (const CosmosException& failure) {
    if (failure.status() != 400 || failure.sub_status() != kKeyMismatch) throw;
  }
  pipeline.forget_routing(container, routing);
  return attempt(pipeline.routing(container, time.for_next_request()));
}

}  // namespace

Container::Container(std::shared_ptr<Pipeline> pipeline, std::string database, std::string id)
    : pipeline_(std::move(pipeline)), id_(std::move(id)) {
  link_.append("dbs/").append(segment(database, "database"));
  link_.append("/colls/").append(segment(id_, "container"));
}

// ── documents ────────────────────────────────────────────────────────────────────────────────────

Response<std::string> Container::create_item(const JsonText& document, const PartitionKey& key,
                                             const ItemOptions& options) const {
  return ItemCall("POST", link_, key, options)
      .in_list()
      .with_body(document.view())
      .writing(/*repeatable=*/false)
      .send_for_document(*pipeline_);
}

Response<std::string> Container::upsert_item(const JsonText& document, const PartitionKey& key,
                                             const ItemOptions& options) const {
  return ItemCall("POST", link_, key, options)
      .in_list()
      .upserting()
      .with_body(document.view())
      .writing(/*repeatable=*/true)
      .send_for_document(*pipeline_);
}

Response<std::string> Container::create_item(const JsonText& document,
                                             const ItemOptions& options) const {
  return with_key_of(*pipeline_, link_, document, options,
                     [&](const PartitionKey& key, const ItemOptions& now) {
                       return create_item(document.view(), key, now);
                     });
}

Response<std::string> Container::upsert_item(const JsonText& document,
                                             const ItemOptions& options) const {
  return with_key_of(*pipeline_, link_, document, options,
                     [&](const PartitionKey& key, const ItemOptions& now) {
                       return upsert_item(document.view(), key, now);
                     });
}

Response<std::string> Container::read_item(std::string_view id, const PartitionKey& key,
                                           const ItemOptions& options) const {
  return ItemCall("GET", link_, key, options).on(id).send_for_document(*pipeline_);
}

Response<std::string> Container::replace_item(std::string_view id, const JsonText& document,
                                              const PartitionKey& key,
                                              const ItemOptions& options) const {
  return ItemCall("PUT", link_, key, options)
      .on(id)
      .with_body(document.view())
      .writing(/*repeatable=*/true)
      .send_for_document(*pipeline_);
}

Response<std::string> Container::replace_item(std::string_view id, const JsonText& document,
                                              const ItemOptions& options) const {
  return with_key_of(*pipeline_, link_, document, options,
                     [&](const PartitionKey& key, const ItemOptions& now) {
                       return replace_item(id, document.view(), key, now);
                     });
}

Response<std::string> Container::patch_item(std::string_view id, const Patch& patch,
                                            const PartitionKey& key,
                                            const ItemOptions& options) const {
  return ItemCall("PATCH", link_, key, options)
      .on(id)
      .with_body(patch.to_json(), "application/json_patch+json")
      .writing(/*repeatable=*/false)
      .send_for_document(*pipeline_);
}

Response<Nothing> Container::delete_item(std::string_view id, const PartitionKey& key,
                                         const ItemOptions& options) const {
  Answer answer =
      ItemCall("DELETE", link_, key, options).on(id).writing(/*repeatable=*/true).send(*pipeline_);
  return respond(answer, Nothing{});
}

ItemPages Container::list_items(const ItemListOptions& options) const {
  return item_pages(pipeline_, link_, std::nullopt, options);
}

ItemPages Container::query_items(const Query& query, const QueryOptions& options) const {
  return item_pages(pipeline_, link_, query, options);
}

// ── ranges ───────────────────────────────────────────────────────────────────────────────────────

std::vector<PartitionKeyRange> Container::partition_key_ranges(
    const RequestOptions& options) const {
  const CallTime time(options);
  // The caller wants the current ranges. To look again costs little: the server says in one word
  // that nothing is new.
  pipeline_->forget_routing(link_, nullptr);
  const auto routing = pipeline_->routing(link_, time.for_next_request());
  return {routing->ranges().begin(), routing->ranges().end()};
}

std::vector<FeedRange> Container::feed_ranges(const RequestOptions& options) const {
  std::vector<FeedRange> ranges;
  for (const PartitionKeyRange& range : partition_key_ranges(options)) {
    ranges.push_back(range.range);
  }
  return ranges;
}

FeedRange Container::feed_range_of(const PartitionKey& key, const RequestOptions& options) const {
  return slice_of(*pipeline_->routing(link_, options), key);
}

// ── the container itself ─────────────────────────────────────────────────────────────────────────

Response<ContainerProperties> Container::read(const RequestOptions& options) const {
  Answer answer = pipeline_->send(Call{.type = "colls", .link = link_}, options);
  auto properties = ContainerProperties::from_json(answer.body);
  return respond(answer, std::move(properties));
}

Response<ContainerProperties> Container::replace(const ContainerProperties& properties,
                                                 const RequestOptions& options) const {
  Call call{.method = "PUT", .type = "colls", .link = link_};
  call.headers.emplace_back(headers::kContentType.text, "application/json");
  call.body = properties.to_json();
  call.writes = true;
  Answer answer = pipeline_->send(call, options);
  auto replaced = ContainerProperties::from_json(answer.body);
  return respond(answer, std::move(replaced));
}

Response<Nothing> Container::remove(const RequestOptions& options) const {
  Call call{.method = "DELETE", .type = "colls", .link = link_};
  call.writes = true;
  Answer answer = pipeline_->send(call, options);
  return respond(answer, Nothing{});
}

Response<Throughput> Container::read_throughput(const RequestOptions& options) const {
  const CallTime time(options);
  const auto properties = read(time.for_next_request());
  return read_throughput_of(*pipeline_, properties.value.rid, time.for_next_request());
}

Response<Throughput> Container::replace_throughput(const Throughput& throughput,
                                                   const RequestOptions& options) const {
  const CallTime time(options);
  const auto properties = read(time.for_next_request());
  return replace_throughput_of(*pipeline_, properties.value.rid, throughput,
                               time.for_next_request());
}

}  // namespace orrery::client
