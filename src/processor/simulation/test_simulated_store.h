// A lease store in a simulated world: one server, and a client of it for each host.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "processor/leases/lease_store.h"
#include "processor/simulation/test_simulation.h"

namespace orrery::processor::simulation {

class StoreServer {
 public:
  explicit StoreServer(World& world) : world_(world) {}

  Result<std::vector<StoredDocument>> list(const std::string& prefix) const {
    std::vector<StoredDocument> found;
    for (auto at = documents_.lower_bound(prefix);
         at != documents_.end() && at->first.starts_with(prefix); ++at) {
      found.push_back(seen(at->second));
    }
    return found;
  }
  Result<StoredDocument> read(const std::string& id) const {
    const auto at = documents_.find(id);
    if (at == documents_.end()) return Error(ErrorCode::NotFound, id);
    return seen(at->second);
  }
  Result<StoredDocument> create(const std::string& id, const std::string& text) {
    if (documents_.contains(id)) return Error(ErrorCode::Conflict, id);
    return write(id, text);
  }
  Result<StoredDocument> replace(const std::string& id, const std::string& text,
                                 const std::string& etag) {
    const auto at = documents_.find(id);
    if (at == documents_.end()) return Error(ErrorCode::NotFound, id);
    if (at->second.etag != etag) return Error(ErrorCode::PreconditionFailed, id);
    return write(id, text);
  }
  Result<> remove(const std::string& id, const std::string& etag) {
    const auto at = documents_.find(id);
    if (at == documents_.end()) return Error(ErrorCode::NotFound, id);
    if (!etag.empty() && at->second.etag != etag) {
      return Error(ErrorCode::PreconditionFailed, id);
    }
    documents_.erase(at);
    return {};
  }

  const std::map<std::string, StoredDocument>& documents() const { return documents_; }
  /// Called with every document that is written.
  std::function<void(const StoredDocument&)> on_write;
  std::uint64_t writes() const { return version_; }
  bool down = false;  ///< nobody answers

 private:
  UnixSeconds seconds() const {
    return 1'700'000'000 + std::chrono::duration_cast<std::chrono::seconds>(world_.now()).count();
  }
  StoredDocument seen(StoredDocument document) const {
    document.store_now = seconds();
    return document;
  }
  StoredDocument write(const std::string& id, const std::string& text) {
    StoredDocument& document = documents_[id];
    document = {id, text, "\"" + std::to_string(++version_) + "\"", seconds(), 0};
    if (on_write) on_write(document);
    return seen(document);
  }

  World& world_;
  std::map<std::string, StoredDocument> documents_;
  std::uint64_t version_ = 0;
};

/// As one life of a host sees it.
class StoreClient final : public AsyncLeaseStore {
 public:
  StoreClient(World& world, StoreServer& server, std::shared_ptr<SimulatedRuntime> runtime,
              const Network& network)
      : world_(world), server_(server), runtime_(std::move(runtime)), network_(network) {}

  Async<std::vector<StoredDocument>> list(std::string prefix) override {
    return send<std::vector<StoredDocument>>(
        [&server = server_, prefix = std::move(prefix)] { return server.list(prefix); });
  }
  Async<StoredDocument> read(std::string id) override {
    return send<StoredDocument>(
        [&server = server_, id = std::move(id)] { return server.read(id); });
  }
  Async<StoredDocument> create(std::string id, std::string text) override {
    return send<StoredDocument>([&server = server_, id = std::move(id), text = std::move(text)] {
      return server.create(id, text);
    });
  }
  Async<StoredDocument> replace(std::string id, std::string text, std::string etag) override {
    return send<StoredDocument>(
        [&server = server_, id = std::move(id), text = std::move(text), etag = std::move(etag)] {
          return server.replace(id, text, etag);
        });
  }
  Async<> remove(std::string id, std::string etag) override {
    return send<void>([&server = server_, id = std::move(id), etag = std::move(etag)] {
      return server.remove(id, etag);
    });
  }

 private:
  template <typename T>
  Async<T> send(std::function<Result<T>()> ask) {
    return exchange<Result<T>>(
        world_, runtime_, network_,
        [&server = server_, ask = std::move(ask)]() -> Result<T> {
          if (server.down) {
            return Error(ErrorCode::Unavailable, "the store is down");
          }
          return ask();
        },
        Error(ErrorCode::Unavailable, "no answer"), Error(ErrorCode::TooManyRequests, "too many"));
  }

  World& world_;
  StoreServer& server_;
  std::shared_ptr<SimulatedRuntime> runtime_;
  const Network& network_;
};

}  // namespace orrery::processor::simulation
