// A ledger of the changes that observers in a simulated world have processed, and a sink that must
// get each change once; both check that it was done right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "processor/leases/lease.h"
#include "processor/simulation/test_simulated_feed.h"

namespace orrery::processor::simulation {

/// The changes that were processed, and whether it was done right. Records problems.
class Ledger {
 public:
  explicit Ledger(const FeedServer& feed) : feed_(feed) {}

  void problem(std::string what) {
    if (problems_.size() < 10) problems_.push_back(std::move(what));
  }
  const std::vector<std::string>& problems() const { return problems_; }

  /// An owner begins. No epoch of a lease may ever belong to two.
  void opened(const std::string& token, std::uint64_t epoch, const std::string& life) {
    const auto [owner, first] = owners_.try_emplace({token, epoch}, life);
    if (!first) {
      problem(fmt::format("epoch {} of lease {} belongs to {} and to {}", epoch, token,
                          owner->second, life));
    }
  }

  void processed(const std::string& token, std::uint64_t epoch, std::string_view document) {
    const Change change = parse(document);
    int& newest = processed_[change.key];
    if (change.version > newest + 1) {
      problem(fmt::format("version {} of key {} was processed before version {}", change.version,
                          change.key, newest + 1));
    }
    if (change.version > newest) ++first_deliveries_;
    newest = std::max(newest, change.version);
    ++deliveries_;
    int& last = by_epoch_[{token, epoch, change.key}];
    if (change.version <= last) {
      problem(fmt::format("lease {} went back from version {} to {} of key {} within epoch {}",
                          token, last, change.version, change.key, epoch));
    }
    last = change.version;
  }
  static Change parse(std::string_view document) {
    Change change;
    unsigned long long lsn = 0;
    const std::string text(document);
    std::sscanf(text.c_str(), "{\"id\":\"%d-%d\"", &change.key, &change.version);
    std::sscanf(text.c_str() + text.rfind(':'), ":%llu", &lsn);
    change.lsn = lsn;
    return change;
  }

  /// Everything before a position that is written must have been processed.
  void checkpointed(const StoredDocument& document) {
    const auto lease = parse_lease(document);
    if (!lease) {
      problem("a lease can't be read: " + lease.error().message());
      return;
    }
    if (!lease->position) return;
    const std::uint64_t position = position_lsn(*lease->position).value_or(0);
    const client::FeedRange area = feed_.area_of(lease->token);
    for (const Change& change : feed_.changes()) {
      if (change.lsn > position || change.hash < area.min || area.max <= change.hash) continue;
      if (processed_[change.key] < change.version) {
        problem(fmt::format("lease {} is at {}, but version {} of key {} (lsn {}) is not processed",
                            lease->token, position, change.version, change.key, change.lsn));
      }
    }
  }

  bool all_processed() const { return first_deliveries_ == feed_.changes().size(); }
  std::size_t deliveries() const { return deliveries_; }

 private:
  const FeedServer& feed_;
  std::vector<std::string> problems_;
  std::map<std::pair<std::string, std::uint64_t>, std::string> owners_;
  std::map<int, int> processed_;  // By key: the newest version.
  std::map<std::tuple<std::string, std::uint64_t, int>, int> by_epoch_;
  std::size_t first_deliveries_ = 0;
  std::size_t deliveries_ = 0;
};

/// A place that keeps positions and data in one transaction, so that it gets every change once
/// although observers get some twice. There is a position for each lease and key: who wrote it (the
/// epoch), and up to where. Changes not beyond the position of any lease are there already.
class Sink {
 public:
  explicit Sink(Ledger& ledger) : ledger_(ledger) {}

  /// A host that has lost its lease, and does not know it yet, finds that its epoch is over.
  bool refuses(const std::string& token, std::uint64_t epoch, const Change& change) {
    const auto position = positions_[change.key].find(token);
    const bool over = position != positions_[change.key].end() && position->second.epoch > epoch;
    if (over) ++refusals_;
    return over;
  }
  void write(const std::string& token, std::uint64_t epoch, const Change& change) {
    Position& position = positions_[change.key][token];
    const std::pair reached(change.lsn, change.version);
    const bool known = std::ranges::any_of(
        positions_[change.key], [&](const auto& each) { return reached <= each.second.reached; });
    position.epoch = std::max(position.epoch, epoch);
    position.reached = std::max(position.reached, reached);
    if (known) return;
    if (change.version != ++versions_[change.key]) {
      ledger_.problem(fmt::format("the sink got version {} of key {} as its {}th", change.version,
                                  change.key, versions_[change.key]));
    }
  }
  void check(const std::vector<Change>& changes) {
    for (const Change& change : changes) {
      if (versions_[change.key] < change.version) {
        ledger_.problem(
            fmt::format("the sink lacks version {} of key {}", change.version, change.key));
      }
    }
  }
  std::size_t refusals() const { return refusals_; }

 private:
  struct Position {
    std::uint64_t epoch = 0;
    std::pair<std::uint64_t, int> reached;  // An LSN, and how much of that transaction.
  };

  Ledger& ledger_;
  std::map<int, std::map<std::string, Position>> positions_;  // By key and lease.
  std::map<int, int> versions_;                               // By key.
  std::size_t refusals_ = 0;
};

}  // namespace orrery::processor::simulation
