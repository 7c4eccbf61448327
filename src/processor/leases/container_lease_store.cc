#include "processor/leases/container_lease_store.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "json/document_text.h"
#include "json/value.h"
#include "orrery/exception.h"
#include "processor/errors.h"
#include "processor/leases/blocking_lease_store.h"
#include "protocol/wire/http_date.h"

namespace orrery::processor {
namespace {

/// Calls at the same time. Leases are written seldom and quickly.
constexpr std::size_t kThreads = 8;
constexpr const char* kListing = "SELECT * FROM c WHERE STARTSWITH(c.id, @PartitionLeasePrefix)";
constexpr std::string_view kKeyProperty = "partitionKey";

/// The result of `call`, or an Error for its exception: none may leave a thread of the pool.
template <typename Call>
std::invoke_result_t<Call> guarded(const Call& call) {
  try {
    return call();
  } catch (...) {
    return error_of(std::current_exception());
  }
}

UnixSeconds date_of(const client::ResponseInfo& response) {
  return parse_http_date(response.header("date")).value_or(0);
}

StoredDocument stored(std::string_view text, const client::ResponseInfo& response) {
  const auto value = json::Value::of_checked(text);
  StoredDocument document;
  document.id = value.member("id").string_or_empty();
  document.text = text;
  document.etag = value.member("_etag").string_or_empty();
  const json::Value ts = value.member("_ts");
  if (ts.is_number()) document.ts = ts.as_number().integer;
  document.store_now = date_of(response);
  return document;
}

/// A write answers without the document: what was sent, under its new etag.
StoredDocument written(const std::string& id, std::string text,
                       const client::ResponseInfo& response) {
  StoredDocument document;
  document.id = id;
  document.text = std::move(text);
  document.etag = response.etag;
  document.ts = date_of(response);
  document.store_now = document.ts;
  return document;
}

}  // namespace

ContainerLeaseStore::ContainerLeaseStore(client::Container container)
    : container_(std::move(container)), pool_(kThreads) {}

Result<ContainerLeaseStore::KeyedBy> ContainerLeaseStore::keyed_by() {
  {
    const std::lock_guard lock(mutex_);
    if (keyed_by_) return *keyed_by_;
  }
  const auto paths = container_.read().value.partition_key_paths;
  std::optional<KeyedBy> found;
  if (paths.empty() || paths == std::vector<std::string>{"/_partitionKey"}) {
    found = KeyedBy::Nothing;
  } else if (paths == std::vector<std::string>{"/id"}) {
    found = KeyedBy::Id;
  } else if (paths == std::vector<std::string>{"/partitionKey"}) {
    found = KeyedBy::PartitionKey;
  }
  if (!found) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("the container '{}' can't hold leases: its partition key must be /id "
                             "or /partitionKey, and is {}",
                             container_.id(), paths.front()));
  }
  const std::lock_guard lock(mutex_);
  keyed_by_ = found;
  return *found;
}

Result<client::PartitionKey> ContainerLeaseStore::key_of(const std::string& id,
                                                         const std::string& etag) {
  ORRERY_TRY(const auto by, keyed_by());
  if (by == KeyedBy::Nothing) return client::PartitionKey::none();
  if (by == KeyedBy::Id) return client::PartitionKey(id);
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(id);
  if (found == keys_.end()) return client::PartitionKey(id);
  const auto& [current, by_etag] = found->second;
  const auto exact = by_etag.find(etag);
  return client::PartitionKey(exact == by_etag.end() ? current : exact->second);
}

void ContainerLeaseStore::remember(const std::string& id, const std::string& etag,
                                   const std::string& key) {
  Keys& keys = keys_[id];
  keys.current = key;
  if (!keys.by_etag.empty()) keys.by_etag.insert_or_assign(etag, key);
}

/// Where the container wants it, a document says its own id as its key.
Result<std::string> ContainerLeaseStore::with_key(const std::string& id, const std::string& text) {
  ORRERY_TRY(const auto by, keyed_by());
  if (by != KeyedBy::PartitionKey) return text;
  ORRERY_TRY(auto document, json::Value::parse(text));
  if (document.is_object() && document.member(kKeyProperty).is_undefined()) {
    document.set_member(kKeyProperty, json::Value::string(id));
  }
  return document.to_text();
}

std::vector<StoredDocument> ContainerLeaseStore::query(const std::string& prefix) {
  std::string literal;
  json::append_quoted(literal, prefix);
  std::vector<StoredDocument> documents;
  auto pages = container_.query_items(
      client::Query(kListing, {client::QueryParameter{"@PartitionLeasePrefix", literal}}));
  pages.for_each([&](const client::ItemPage& page) {
    for (const std::string_view item : page) documents.push_back(stored(item, page));
  });
  return documents;
}

std::vector<StoredDocument> ContainerLeaseStore::read_feed(const std::string& prefix) {
  std::vector<StoredDocument> documents;
  auto pages = container_.list_items();
  pages.for_each([&](const client::ItemPage& page) {
    for (const std::string_view item : page) {
      auto document = stored(item, page);
      if (document.id.starts_with(prefix)) documents.push_back(std::move(document));
    }
  });
  return documents;
}

Result<std::vector<StoredDocument>> ContainerLeaseStore::list_now(const std::string& prefix) {
  ORRERY_TRY(const auto by, keyed_by());
  bool can_query = true;
  {
    const std::lock_guard lock(mutex_);
    can_query = can_query_;
  }
  std::vector<StoredDocument> documents;
  if (can_query) {
    try {
      documents = query(prefix);
    } catch (const client::CosmosException& refusal) {
      if (refusal.status() != 501) throw;
      can_query = false;  // A server without a query engine.
    }
  }
  if (!can_query) documents = read_feed(prefix);
  std::ranges::sort(documents, {}, &StoredDocument::id);

  const std::lock_guard lock(mutex_);
  can_query_ = can_query;
  if (by != KeyedBy::PartitionKey) return documents;
  for (std::size_t index = 0; index < documents.size(); ++index) {
    const StoredDocument& document = documents[index];
    const std::string key =
        json::Value::of_checked(document.text).member(kKeyProperty).string_or_empty();
    const bool first = index == 0 || documents[index - 1].id != document.id;
    const bool last = index + 1 == documents.size() || documents[index + 1].id != document.id;
    Keys& keys = keys_[document.id];
    if (first) keys.by_etag.clear();
    if (!first || !last) keys.by_etag.emplace(document.etag, key);
    // Of several, the one that was used before stays the current one.
    if ((first && last) || keys.current.empty()) keys.current = key;
  }
  return documents;
}

Result<StoredDocument> ContainerLeaseStore::read_now(const std::string& id) {
  ORRERY_TRY(const auto key, key_of(id, {}));
  const auto response = container_.read_item(id, key);
  return stored(response.value, response);
}

Result<StoredDocument> ContainerLeaseStore::create_now(const std::string& id,
                                                       const std::string& text) {
  ORRERY_TRY(auto keyed, with_key(id, text));
  ORRERY_TRY(const auto by, keyed_by());
  client::PartitionKey key = client::PartitionKey::none();
  if (by != KeyedBy::Nothing) key = client::PartitionKey(id);
  client::ItemOptions options;
  options.return_content = false;
  const auto response = container_.create_item(keyed, key, options);
  const std::lock_guard lock(mutex_);
  if (by == KeyedBy::PartitionKey) remember(id, response.etag, id);
  return written(id, std::move(keyed), response);
}

Result<StoredDocument> ContainerLeaseStore::replace_now(const std::string& id,
                                                        const std::string& text,
                                                        const std::string& etag) {
  ORRERY_TRY(auto keyed, with_key(id, text));
  ORRERY_TRY(const auto key, key_of(id, etag));
  client::ItemOptions options;
  options.return_content = false;
  options.if_match = etag;
  const auto response = container_.replace_item(id, keyed, key, options);
  ORRERY_TRY(const auto by, keyed_by());
  const std::lock_guard lock(mutex_);
  if (by == KeyedBy::PartitionKey) {
    remember(id, response.etag,
             json::Value::of_checked(keyed).member(kKeyProperty).string_or_empty());
  }
  return written(id, std::move(keyed), response);
}

Result<> ContainerLeaseStore::remove_now(const std::string& id, const std::string& etag) {
  ORRERY_TRY(const auto key, key_of(id, etag));
  client::ItemOptions options;
  options.if_match = etag;
  container_.delete_item(id, key, options);
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(id);
  if (found == keys_.end()) return {};
  // Of several only the one with that etag is gone.
  found->second.by_etag.erase(etag);
  if (found->second.by_etag.empty()) keys_.erase(found);
  return {};
}

Async<std::vector<StoredDocument>> ContainerLeaseStore::list(std::string prefix) {
  co_return co_await run_blocking(
      pool_, [this, prefix] { return guarded([&] { return list_now(prefix); }); });
}

Async<StoredDocument> ContainerLeaseStore::read(std::string id) {
  co_return co_await run_blocking(pool_,
                                  [this, id] { return guarded([&] { return read_now(id); }); });
}

Async<StoredDocument> ContainerLeaseStore::create(std::string id, std::string text) {
  co_return co_await run_blocking(
      pool_, [this, id, text] { return guarded([&] { return create_now(id, text); }); });
}

Async<StoredDocument> ContainerLeaseStore::replace(std::string id, std::string text,
                                                   std::string etag) {
  co_return co_await run_blocking(pool_, [this, id, text, etag] {
    return guarded([&] { return replace_now(id, text, etag); });
  });
}

Async<> ContainerLeaseStore::remove(std::string id, std::string etag) {
  co_return co_await run_blocking(
      pool_, [this, id, etag] { return guarded([&] { return remove_now(id, etag); }); });
}

std::shared_ptr<LeaseStore> container_lease_store(client::Container leases) {
  return std::make_shared<BlockingLeaseStore>(
      std::make_unique<ContainerLeaseStore>(std::move(leases)));
}

}  // namespace orrery::processor
