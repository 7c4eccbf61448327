#include "server/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace orrery::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Labels = std::vector<ClientMetric::Label>;

class Families {
 public:
  void counter(std::string name, std::string help, double value, Labels labels = {}) {
    ClientMetric metric;
    metric.counter.value = value;
    add(MetricType::Counter, std::move(name), std::move(help), std::move(metric),
        std::move(labels));
  }
  void gauge(std::string name, std::string help, double value, Labels labels = {}) {
    ClientMetric metric;
    metric.gauge.value = value;
    add(MetricType::Gauge, std::move(name), std::move(help), std::move(metric), std::move(labels));
  }
  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  void add(MetricType type, std::string name, std::string help, ClientMetric metric,
           Labels labels) {
    metric.label = std::move(labels);
    if (families_.empty() || families_.back().name != name) {
      families_.push_back({std::move(name), std::move(help), type, {}});
    }
    families_.back().metric.push_back(std::move(metric));
  }

  std::vector<MetricFamily> families_;
};

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  double resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double number(const std::atomic<std::uint64_t>& counter) {
  return static_cast<double>(counter.load(std::memory_order_relaxed));
}

}  // namespace

std::string metrics_text(const MetricsSources& sources) {
  Families families;
  families.gauge("orrery_build_info", "The version that runs.", 1, {{"version", ORRERY_VERSION}});
  families.gauge("orrery_resident_bytes", "Memory in use.", resident_bytes());

  for (const api::AccountKey& key : sources.keys.in_force()) {
    families.gauge("orrery_key_last_used_seconds",
                   "When a request signed with this account key was let in, in seconds since 1970.",
                   static_cast<double>(key.last_used->load(std::memory_order_relaxed)),
                   {{"slot", key.slot}});
  }

  families.counter("orrery_connections_accepted_total", "Connections accepted.",
                   number(sources.http.connections_accepted));
  families.gauge("orrery_connections_open", "Connections open now.",
                 number(sources.http.connections_open));
  families.counter("orrery_connections_refused_total", "Connections over the limit.",
                   number(sources.http.connections_refused));
  families.counter("orrery_connections_closed_for_room_total",
                   "Idle connections without a key, closed because too many were open.",
                   number(sources.http.strangers_closed));
  families.gauge("orrery_request_memory_bytes",
                 "Memory of the requests and answers that are under way.",
                 static_cast<double>(sources.memory.used()));
  families.gauge("orrery_request_memory_max_bytes", "What it may be.",
                 static_cast<double>(sources.memory.bytes_max()));
  families.counter("orrery_request_memory_refused_total",
                   "Requests and answers that did not fit into it.",
                   number(sources.http.memory_refusals));
  families.counter("orrery_slow_readers_dropped_total",
                   "Clients that did not read their answers while this memory was short.",
                   number(sources.http.slow_readers_dropped));
  families.counter("orrery_requests_total", "Requests that arrived completely.",
                   number(sources.http.requests));
  families.counter("orrery_requests_timed_out_total", "Requests that took too long to arrive.",
                   number(sources.http.requests_timed_out));
  families.counter("orrery_tls_handshakes_failed_total", "TLS handshakes that failed.",
                   number(sources.http.tls_handshakes_failed));
  for (std::size_t hundreds = 1; hundreds < sources.api.responses.size(); ++hundreds) {
    families.counter("orrery_responses_total", "Responses by class of status.",
                     number(sources.api.responses[hundreds]),
                     {{"status", std::to_string(hundreds) + "xx"}});
  }
  families.counter("orrery_throttled_total", "Requests answered 429.",
                   number(sources.api.throttled));
  families.counter("orrery_request_units_total", "Request charges, added up.",
                   number(sources.api.charge_hundredths) / 100.0);

  families.counter("orrery_feed_pages_total", "Pages of the change feed read from the store.",
                   number(sources.feed.pages));
  families.counter("orrery_feed_items_total", "Changes in these pages.",
                   number(sources.feed.items));
  families.counter(
      "orrery_feed_positions_ahead_total",
      "Requests that were refused because their etag is beyond the head of their range: it was "
      "taken elsewhere.",
      number(sources.feed.positions_ahead));
  families.counter("orrery_feed_live_maps_made_total",
                   "Times that the live versions of a log were mapped, to jump over dead ones.",
                   number(sources.live_maps.built));
  families.gauge("orrery_feed_live_map_bytes", "Memory that these maps take.",
                 number(sources.live_maps.bytes));
  const auto& push = sources.push;
  families.gauge("orrery_feed_readers_waiting",
                 "Readers of the change feed that wait for a change or have changes streamed.",
                 static_cast<double>(push.room.readers()));
  families.gauge("orrery_feed_streams", "Streams of changes open now.", number(push.stats.streams));
  families.counter("orrery_feed_events_total", "Pieces with changes sent to streams.",
                   number(push.stats.events));
  families.counter("orrery_feed_waits_total", "Requests for changes that had to wait.",
                   number(push.stats.polls));
  families.counter("orrery_feed_readers_refused_total",
                   "Readers that could not wait because too many did.", number(push.stats.refused));
  families.counter("orrery_feed_tail_reads_total", "Reads of the end of a log, for who is there.",
                   number(push.reads.stats().reads));
  families.counter("orrery_feed_tail_shared_total", "Readers who were served by one of another's.",
                   number(push.reads.stats().shared));

  const auto& commits = sources.committer.stats();
  families.counter("orrery_commits_total", "Commits; each is one fsync in strict durability.",
                   number(commits.commits));
  families.counter("orrery_commit_groups_total", "Groups of transactions that commits carried.",
                   number(commits.groups));
  families.counter("orrery_commit_bytes_total", "Bytes that commits carried.",
                   number(commits.bytes));
  families.counter("orrery_commit_failures_total", "Commits that the disk refused.",
                   number(commits.commit_failures));
  families.counter("orrery_commit_recoveries_total", "Times that writes resumed after that.",
                   number(commits.recoveries));
  families.gauge("orrery_accepts_writes", "1 while the disk takes writes.",
                 sources.committer.accepts() ? 1 : 0);
  families.gauge("orrery_durability_strict",
                 "0 with --durability=relaxed: acknowledged writes may "
                 "be lost in a power failure.",
                 sources.strict_durability ? 1 : 0);

  families.gauge("orrery_containers", "Containers in the account.",
                 static_cast<double>(sources.catalog.definitions().container_count()));
  families.gauge("orrery_ts_ahead_seconds",
                 "How far the latest _ts is ahead of the clock, because that was ahead once.",
                 static_cast<double>(std::max<UnixSeconds>(
                     0, sources.catalog.definitions().latest_time().ts - sources.now)));
  families.counter("orrery_purged_documents_total", "Documents deleted because they had expired.",
                   number(sources.upkeep.purged_documents));
  families.counter("orrery_trimmed_history_records_total",
                   "Recorded changes let go because of their age or their number.",
                   number(sources.upkeep.trimmed_history_records));
  families.counter("orrery_indexes_added_total", "Secondary indexes added to ranges.",
                   number(sources.indexes.added_indexes));
  families.counter("orrery_indexes_dropped_total", "Secondary indexes dropped from ranges.",
                   number(sources.indexes.dropped_indexes));
  families.counter("orrery_index_built_documents_total",
                   "Documents that were there before an index and were put into it.",
                   number(sources.indexes.indexed_documents));
  families.gauge("orrery_vector_indexes", "Vector indexes of ranges in memory.",
                 static_cast<double>(sources.vector_indexes.indexes));
  families.gauge("orrery_vector_index_bytes", "Memory that they may grow to.",
                 static_cast<double>(sources.vector_indexes.bytes));

  const auto store = sources.store.stats();
  families.gauge("orrery_store_memtable_bytes", "Written and not yet in tables.",
                 static_cast<double>(store.memtable_bytes));
  families.gauge("orrery_store_cache_bytes", "Block cache in use.",
                 static_cast<double>(store.cache_bytes));
  families.gauge("orrery_store_live_bytes", "Tables on the disk.",
                 static_cast<double>(store.live_bytes));
  families.gauge("orrery_store_pending_compaction_bytes", "What compaction has yet to rewrite.",
                 static_cast<double>(store.pending_compaction_bytes));
  families.counter("orrery_store_write_stalls_total",
                   "How often RocksDB has begun to slow writes down.",
                   static_cast<double>(store.write_stalls));

  families.counter("orrery_backups_total", "Back-ups that were taken.",
                   number(sources.backups.taken));
  families.counter("orrery_backups_failed_total", "Back-ups that came to nothing.",
                   number(sources.backups.failed));
  families.gauge("orrery_backup_last_seconds",
                 "When the last back-up was taken, in seconds since 1970; 0: none since the start.",
                 static_cast<double>(sources.backups.last_taken.load()));
  families.gauge("orrery_backup_running", "1 while a back-up is being taken.",
                 sources.backups.is_running ? 1 : 0);
  families.counter("orrery_check_findings_total", "What checks of the store have found wrong.",
                   static_cast<double>(sources.check_findings));
  return families.text();
}

}  // namespace orrery::server
