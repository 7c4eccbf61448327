// The server's metrics, for Prometheus.
#pragma once

#include <string>

#include "api/feed/feed_push.h"
#include "api/keyring.h"
#include "api/pipeline.h"
#include "base/clock.h"
#include "catalog/catalog.h"
#include "feed/live_map.h"
#include "feed/reader.h"
#include "http/listener.h"
#include "index/vector/vector_indexes.h"
#include "maintenance/backup_runner.h"
#include "maintenance/housekeeper.h"
#include "maintenance/index_builder.h"
#include "partition/committer.h"
#include "storage/store.h"

namespace orrery::server {

struct MetricsSources {
  const http::Stats& http;
  const http::MemoryBudget& memory;
  const api::PipelineStats& api;
  const feed::Push& push;
  const feed::ReaderStats& feed;
  const feed::LiveMapStats& live_maps;
  const partition::Committer& committer;
  const catalog::Catalog& catalog;
  const maintenance::HousekeeperStats& upkeep;
  const maintenance::IndexBuilderStats& indexes;
  index::VectorIndexes::Stats vector_indexes;
  const storage::Store& store;
  const api::Keyring& keys;
  const maintenance::BackupRunner::Stats& backups;
  std::uint64_t check_findings;
  bool strict_durability;
  UnixSeconds now;
};

/// The text format of Prometheus.
std::string metrics_text(const MetricsSources& sources);

}  // namespace orrery::server
