#include "sinks/container/job.h"

#include <algorithm>
#include <latch>
#include <unordered_map>

#include <fmt/format.h>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "client/handles/container_access.h"
#include "processor/leases/lease.h"
#include "processor/leases/lease_area.h"
#include "sinks/container/lease_writer.h"
#include "sinks/container/retry.h"

namespace orrery::sinks {
namespace {

using std::chrono::milliseconds;

/// In the ids of leases, where the originals have the name of the source's server: the group tells
/// it already.
constexpr const char* kFeedHost = "copy";

processor::MonitoredFeedOptions feed_options(const CopyOptions& options) {
  processor::MonitoredFeedOptions feed;
  feed.start_from_beginning = true;
  feed.max_item_count = options.page_size;
  return feed;
}

processor::ChangeFeedHostOptions host_options(const CopyOptions& options) {
  processor::ChangeFeedHostOptions host;
  // Of this kind every lease says which part of the hash space it stands for, and merges of ranges
  // leave it alone.
  host.lease_format = processor::LeaseFormat::JavaEpk;
  host.lease_prefix = options.lease_prefix;
  host.feed_host = kFeedHost;
  host.lease_renew_interval = milliseconds(3'000);
  host.lease_acquire_interval = milliseconds(1'000);
  host.lease_expiration_interval = milliseconds(15'000);
  host.feed_poll_delay = milliseconds(options.follow ? 1'000 : 200);
  // The end of a copy is noticed when a read finds nothing: it should not wait for more then.
  host.long_poll = options.follow;
  host.shutdown_deadline = milliseconds(10'000);
  return host;
}

/// How far each range of the container reaches now.
std::vector<std::pair<client::FeedRange, std::uint64_t>> heads_of(const client::Container& source) {
  std::vector<std::pair<client::FeedRange, std::uint64_t>> heads;
  for (client::FeedRange& range : source.feed_ranges()) {
    client::ChangeFeedOptions options;
    options.start = client::ChangeFeedStart::now();
    options.feed_range = range;
    const auto page = source.change_feed(options).next();
    if (const auto lsn = processor::position_lsn(page.etag)) {
      heads.emplace_back(std::move(range), *lsn);
    }
  }
  return heads;
}

}  // namespace

// ── CatchUp ──────────────────────────────────────────────────────────────────────────────────────

std::optional<client::FeedRange> area_of_token(const std::string& token) {
  const std::size_t dash = token.find('-');
  if (dash == std::string::npos) return std::nullopt;
  return client::FeedRange{token.substr(0, dash), token.substr(dash + 1)};
}

bool CatchUp::update(const std::vector<processor::LeaseGroup::Lease>& leases,
                     const std::vector<processor::LeaseLag>& lag) {
  for (const processor::LeaseLag& each : lag) {
    if (each.documents == 0) through_.insert(each.lease_token);
  }
  for (const processor::LeaseGroup::Lease& lease : leases) {
    const auto area = area_of_token(lease.token);
    const auto position = processor::position_lsn(lease.position);
    if (!area || !position) continue;
    // The changes of the area at the start are in ranges that overlapped it then.
    bool known = false;
    std::uint64_t head = 0;
    for (const auto& [range, lsn] : heads_) {
      if (!range.overlaps(*area)) continue;
      known = true;
      head = std::max(head, lsn);
    }
    if (known && *position >= head) through_.insert(lease.token);
  }
  // A lease that was being replaced while they were listed may be missing along with those that
  // take its place.
  std::vector<client::FeedRange> through;
  for (const processor::LeaseGroup::Lease& lease : leases) {
    auto area = area_of_token(lease.token);
    if (!area || !through_.contains(lease.token)) return false;
    through.push_back(*std::move(area));
  }
  return processor::uncovered(client::FeedRange(), std::move(through)).empty();
}

// ── the observer of a lease ──────────────────────────────────────────────────────────────────────

/// Threads that write batches, shared by all leases.
class CopyJob::Workers {
 public:
  explicit Workers(std::size_t count) : pool_(count) {}
  ~Workers() { pool_.join(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void run(std::function<void()> work) { boost::asio::post(pool_, std::move(work)); }

 private:
  boost::asio::thread_pool pool_;
};

class CopyJob::Observer final : public processor::ChangeFeedObserver {
 public:
  explicit Observer(CopyJob& job) : job_(job) {}

  void open(processor::ObserverContext& context) override {
    const auto area = area_of_token(context.lease_token());
    if (!area) {
      return job_.fail(CopyFailure("a lease does not say which part of the source it stands for"));
    }
    try {
      auto registration = job_.ledger_.register_owner(*area, context.epoch());
      if (registration.superseded) throw std::runtime_error("another host has taken the lease");
      writer_.emplace(job_.target_, job_.ledger_, *area, context.epoch(), std::move(registration));
    } catch (const CopyFailure& failure) {
      job_.fail(failure);
    } catch (const client::CosmosException& failure) {
      if (!is_transient(failure)) {
        job_.fail(CopyFailure(fmt::format("{}: {}", job_.target_.name, failure.what())));
      }
      throw;
    }
  }

  processor::Outcome process(processor::ObserverContext& context,
                             const processor::Documents& documents) override {
    if (!writer_) return processor::Outcome::stop("there is nobody who could write");
    std::vector<SourceChange> changes;
    changes.reserve(documents.size());
    for (const std::string_view document : documents) {
      if (PositionFormat::is_position(document)) continue;
      auto change = job_.changes_.read(document);
      if (!change) {
        job_.fail(CopyFailure(change.error().message()));
        return processor::Outcome::stop(change.error().message());
      }
      changes.push_back(*std::move(change));
    }
    switch (write(changes, context.stop())) {
      case WriteOutcome::Done:
        return processor::Outcome::done();
      case WriteOutcome::Lost:
        return processor::Outcome::stop("another host has taken the lease");
      case WriteOutcome::Interrupted:
        break;
    }
    return processor::Outcome::retry(milliseconds(0), "interrupted");
  }

  void idle(processor::ObserverContext& /*context*/) override { job_.idle_ = true; }

 private:
  WriteOutcome write(const std::vector<SourceChange>& changes, const std::stop_token& stop) {
    if (changes.empty()) return WriteOutcome::Done;
    if (job_.target_.keys.has_id()) {
      std::vector<const SourceChange*> all;
      all.reserve(changes.size());
      for (const SourceChange& change : changes) all.push_back(&change);
      return guarded([&] { return writer_->write_compared(std::move(all), stop); });
    }
    // In the order of the page, within each key.
    std::vector<std::vector<const SourceChange*>> keys;
    std::unordered_map<std::string, std::size_t> places;
    for (const SourceChange& change : changes) {
      std::string name;
      change.key.append_canonical(name);
      const auto [place, added] = places.try_emplace(std::move(name), keys.size());
      if (added) keys.emplace_back();
      keys[place->second].push_back(&change);
    }
    std::vector<WriteOutcome> outcomes(keys.size(), WriteOutcome::Interrupted);
    std::latch all_done(static_cast<std::ptrdiff_t>(keys.size()));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      job_.workers_->run([&, i] {
        outcomes[i] = guarded([&] { return writer_->write_key(keys[i], stop); });
        all_done.count_down();
      });
    }
    all_done.wait();
    // The worst of them.
    for (const WriteOutcome outcome : {WriteOutcome::Lost, WriteOutcome::Interrupted}) {
      if (std::ranges::find(outcomes, outcome) != outcomes.end()) return outcome;
    }
    return WriteOutcome::Done;
  }

  /// A failure ends the whole copy; until it has, this lease is given up.
  template <typename Write>
  WriteOutcome guarded(Write write) {
    try {
      return write();
    } catch (const CopyFailure& failure) {
      job_.fail(failure);
    } catch (const std::exception& failure) {
      job_.fail(CopyFailure(failure.what()));
    }
    return WriteOutcome::Lost;
  }

  CopyJob& job_;
  std::optional<LeaseWriter> writer_;
};

// ── CopyJob ──────────────────────────────────────────────────────────────────────────────────────

CopyJob::CopyJob(client::Container source, std::shared_ptr<processor::LeaseStore> leases,
                 CopyTarget& target, CopyOptions options)
    : source_(std::move(source)),
      target_(target),
      options_(std::move(options)),
      changes_(client::ContainerAccess::pipeline(source_).routing(source_.link(), {})->definition(),
               target.keys.definition()),
      ledger_(target),
      workers_(std::make_unique<Workers>(options_.concurrency)),
      group_(source_, leases, options_.lease_prefix, kFeedHost),
      host_(options_.host_name, source_, std::move(leases), feed_options(options_),
            host_options(options_)) {}

CopyJob::~CopyJob() { stop(); }

void CopyJob::start() {
  catch_up_.emplace(heads_of(source_));
  host_.set_health_monitor([this](const processor::HealthEvent& event) {
    if (event.operation == processor::kDataRestored) options_.source_restored();
  });
  host_.register_observer([this] { return std::make_unique<Observer>(*this); });
}

void CopyJob::stop() { host_.unregister_observers(); }

void CopyJob::fail(CopyFailure failure) {
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
}

std::optional<CopyFailure> CopyJob::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

bool CopyJob::refresh() {
  // Leases first: changes that were done when they were listed are done when the rest is counted.
  const auto leases = group_.leases();
  const auto lag = group_.lag();
  std::uint64_t left = 0;
  for (const processor::LeaseLag& each : lag) left += each.documents;
  documents_left_ = left;
  return catch_up_->update(leases, lag);
}

bool CopyJob::is_alone() const {
  return std::ranges::all_of(group_.leases(), [](const processor::LeaseGroup::Lease& lease) {
    return lease.owner.empty();
  });
}

}  // namespace orrery::sinks
