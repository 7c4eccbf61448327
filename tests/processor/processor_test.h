// ProcessorTest: hosts against a real server, and what their observers have seen. Uses only public
// headers.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "orrery/processor.h"
#include "test_account.h"
#include "test_sink.h"

namespace orrery::test {

using namespace std::chrono_literals;
using namespace orrery::processor;

/// The value of a member that is text or a number, in a document of these tests.
inline std::string member(std::string_view document, const std::string& name) {
  const std::string mark = "\"" + name + "\":";
  std::size_t at = document.find(mark);
  if (at == std::string_view::npos) return {};
  at += mark.size();
  if (document[at] == '"') {
    ++at;
    return std::string(document.substr(at, document.find('"', at) - at));
  }
  return std::string(document.substr(at, document.find_first_of(",}", at) - at));
}

/// The events that observers of any number of hosts have seen. Thread-safe.
class Record {
 public:
  struct Batch {
    std::string host;
    std::string lease;
    std::uint64_t epoch;
    std::vector<std::string> documents;
  };
  struct Closed {
    std::string host;
    std::string lease;
    CloseReason reason;
  };

  void add(Batch batch) {
    const std::scoped_lock lock(mutex_);
    for (const std::string& document : batch.documents) {
      ++counts_[member(document, "id")];
      order_[member(document, "pk")].push_back(member(document, "id"));
    }
    batches_.push_back(std::move(batch));
  }
  void opened(const std::string& host) {
    const std::scoped_lock lock(mutex_);
    opened_.push_back(host);
  }
  void closed(Closed closed) {
    const std::scoped_lock lock(mutex_);
    closed_.push_back(std::move(closed));
  }

  std::map<std::string, int> counts() const {
    const std::scoped_lock lock(mutex_);
    return counts_;
  }
  std::size_t distinct() const { return counts().size(); }
  std::vector<std::string> order(const std::string& key) const {
    const std::scoped_lock lock(mutex_);
    const auto at = order_.find(key);
    return at == order_.end() ? std::vector<std::string>() : at->second;
  }
  std::vector<Batch> batches() const {
    const std::scoped_lock lock(mutex_);
    return batches_;
  }
  std::vector<Closed> closes() const {
    const std::scoped_lock lock(mutex_);
    return closed_;
  }
  std::vector<std::string> opens() const {
    const std::scoped_lock lock(mutex_);
    return opened_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> counts_;
  std::map<std::string, std::vector<std::string>> order_;
  std::vector<Batch> batches_;
  std::vector<Closed> closed_;
  std::vector<std::string> opened_;
};

using Behaviour = std::function<Outcome(ObserverContext&, const Documents&)>;

class RecordingObserver final : public ChangeFeedObserver {
 public:
  RecordingObserver(std::string host, Record& record, Behaviour behave)
      : host_(std::move(host)), record_(record), behave_(std::move(behave)) {}

  void open(ObserverContext&) override { record_.opened(host_); }
  Outcome process(ObserverContext& context, const Documents& changes) override {
    Outcome outcome;
    if (behave_) outcome = behave_(context, changes);
    Record::Batch batch{host_, context.lease_token(), context.epoch(), {}};
    for (const std::string_view document : changes) batch.documents.emplace_back(document);
    record_.add(std::move(batch));
    return outcome;
  }
  void close(ObserverContext& context, CloseReason reason) override {
    record_.closed({host_, context.lease_token(), reason});
  }

 private:
  std::string host_;
  Record& record_;
  Behaviour behave_;
};

class ProcessorTest : public AccountTest {
 protected:
  void SetUp() override {
    AccountTest::SetUp();
    from_beginning_.start_from_beginning = true;
  }

  void prepare(int ranges) {
    monitored_.emplace(make_container("monitored", ranges));
    leases_.emplace(make_container("leases", 1, {"/id"}, -1));
  }

  std::unique_ptr<ChangeFeedProcessorHost> host(const std::string& name,
                                                ChangeFeedHostOptions options = fast(),
                                                const Behaviour& behave = {}) {
    auto made = std::make_unique<ChangeFeedProcessorHost>(name, *monitored_, *leases_,
                                                          from_beginning_, std::move(options));
    made->register_observer_factory([this, name, behave] {
      return std::make_unique<RecordingObserver>(name, record_, behave);
    });
    return made;
  }

  void write(int count, const std::string& prefix = "d") {
    for (int i = 0; i < count; ++i) {
      const std::string key = "k" + std::to_string(i % 20);
      monitored_->upsert_item("{\"id\":\"" + prefix + std::to_string(i) + "\",\"pk\":\"" + key +
                                  "\",\"n\":" + std::to_string(i) + "}",
                              key);
    }
  }

  /// The documents of the lease container whose id has `part` in it.
  std::vector<std::string> lease_documents(const std::string& part) {
    std::vector<std::string> found;
    leases_->list_items().for_each([&](const client::ItemPage& page) {
      for (const std::string_view document : page) {
        if (member(document, "id").find(part) != std::string::npos) found.emplace_back(document);
      }
    });
    return found;
  }
  /// How many leases each host has; "null" stands for nobody.
  std::map<std::string, int> owners() {
    std::map<std::string, int> counts;
    for (const std::string& lease : lease_documents("..")) ++counts[member(lease, "Owner")];
    return counts;
  }
  std::map<std::string, std::string> positions() {
    std::map<std::string, std::string> found;
    for (const std::string& lease : lease_documents("..")) {
      const auto document = nlohmann::json::parse(lease);
      const auto& position = document.at("ContinuationToken");
      found[document.value("LeaseToken", document.value("PartitionId", ""))] =
          position.is_string() ? position.get<std::string>() : "";
    }
    return found;
  }
  LeaseGroup group() { return LeaseGroup(*monitored_, container_lease_store(*leases_)); }
  /// Changes a lease as a program would that knows nothing of hosts. False: it has changed
  /// meanwhile, or `change` does not want it.
  bool rewrite_lease(const std::string& id,
                     const std::function<bool(nlohmann::json& lease)>& change) {
    const auto read = leases_->read_item(id, id);
    auto document = nlohmann::json::parse(read.value);
    if (!change(document)) return false;
    client::ItemOptions if_unchanged;
    if_unchanged.if_match = read.etag;
    try {
      leases_->replace_item(id, document.dump(), id, if_unchanged);
      return true;
    } catch (const client::CosmosException& refusal) {
      if (refusal.status() != 412) throw;
      return false;
    }
  }
  std::string lease_id(const std::string& token) {
    for (const std::string& lease : lease_documents(".." + token)) {
      if (member(lease, "id").ends_with(".." + token)) return member(lease, "id");
    }
    return {};
  }

  void expect_each_once() {
    for (const auto& [id, count] : record_.counts()) EXPECT_EQ(count, 1) << id;
  }
  /// Of each key of write(), the documents came in the order in which they were written.
  void expect_order_of_keys(const std::string& prefix, int count) {
    for (int key = 0; key < std::min(count, 20); ++key) {
      std::vector<std::string> written;
      for (int i = key; i < count; i += 20) written.push_back(prefix + std::to_string(i));
      std::vector<std::string> seen = record_.order("k" + std::to_string(key));
      std::erase_if(seen, [&](const std::string& id) {
        return !id.starts_with(prefix) ||
               !std::isdigit(static_cast<unsigned char>(id[prefix.size()]));
      });
      EXPECT_EQ(seen, written) << "key " << key;
    }
  }

  std::optional<client::Container> monitored_;
  std::optional<client::Container> leases_;
  MonitoredFeedOptions from_beginning_;
  Record record_;
};

}  // namespace orrery::test
