#include "server/server.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/thread_pool.hpp>

#include "api/authenticator.h"
#include "api/documents/document_request.h"
#include "api/feed/feed_push.h"
#include "api/host_check.h"
#include "api/keyring.h"
#include "api/pipeline.h"
#include "api/services.h"
#include "base/background_pool.h"
#include "base/clock.h"
#include "base/diagnostics.h"
#include "catalog/catalog.h"
#include "catalog/loss_report.h"
#include "commitlog/local.h"
#include "executor/parallel_scan.h"
#include "executor/suspended_queries.h"
#include "feed/live_map.h"
#include "feed/reader.h"
#include "http/listener.h"
#include "index/advisor.h"
#include "index/vector/vector_indexes.h"
#include "maintenance/auto_split.h"
#include "maintenance/backup_runner.h"
#include "maintenance/check_runner.h"
#include "maintenance/compactor.h"
#include "maintenance/housekeeper.h"
#include "maintenance/index_builder.h"
#include "maintenance/range_change.h"
#include "maintenance/reclaimer.h"
#include "partition/committer.h"
#include "partition/partition.h"
#include "server/account_keys.h"
#include "server/data_directory.h"
#include "server/health.h"
#include "server/machine_limits.h"
#include "server/metrics.h"
#include "storage/life_mark.h"
#include "storage/store.h"

namespace orrery::server {
namespace {

/// Threads for what may block: cold reads, changes of the catalog.
constexpr std::size_t kBlockingThreads = 4;
/// Threads that read pages of feeds, and for long queries. One client has one less.
constexpr std::size_t kScanThreads = 5;
/// So many of them may help one that scans: no more than there are processors for.
std::size_t scan_helpers() {
  const std::size_t processors = std::max(1u, std::thread::hardware_concurrency());
  return std::min(processors, kScanThreads - 1) - 1;
}
/// Threads for queries that are short. One client has one less.
constexpr std::size_t kShortQueryThreads = 4;
/// Threads that validate and stage writes.
constexpr std::size_t kWriterThreads = 2;
/// Threads that see to splits and merges: so many go on at once, others wait for them.
constexpr std::size_t kTopologyThreads = 2;

/// Connections of the ports for the explorer and for health, each.
constexpr std::size_t kOtherConnectionsMax = 100;

/// The host of "https://host:port/…", without its port.
std::string host_of(std::string_view url) {
  return std::string(api::name_of_host(api::host_of_url(url)));
}

Result<std::string> checked_endpoint(std::string endpoint) {
  if (endpoint.empty()) return endpoint;
  if (!endpoint.starts_with("http://") && !endpoint.starts_with("https://")) {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("--advertise must be a URL such as https://orrery.example:8081/, not '{}'",
                    endpoint));
  }
  return endpoint;
}

/// A back-up goes with the disk that it is on; in the data directory it would go with that, too.
Result<> check_backup_directory(const std::filesystem::path& backups,
                                const std::filesystem::path& data) {
  std::error_code ignored;
  const auto from_data = std::filesystem::weakly_canonical(backups, ignored)
                             .lexically_relative(std::filesystem::weakly_canonical(data, ignored));
  if (from_data.empty() || *from_data.begin() == "..") return {};
  return Error(
      ErrorCode::BadRequest,
      fmt::format("--backup-dir {} is in the data directory {}: choose one elsewhere, best "
                  "on another disk",
                  backups.string(), data.string()));
}

/// The LSNs that a loss takes away, a line for each range, as far as they can be known.
std::vector<std::string> describe_loss(const storage::StoreOptions& options,
                                       const storage::Loss& loss) {
  if (!loss.is_acceptable) return {};
  const auto remains = storage::Store::open_remains(options);
  if (!remains) return {};
  return catalog::describe_loss(**remains, loss).value_or(std::vector<std::string>());
}

Error with_lines(const Error& refusal, const std::vector<std::string>& lines) {
  if (lines.empty()) return refusal;
  std::string message = refusal.message() + ". Lost are, as far as it can be known:";
  for (const std::string& line : lines) message += "\n  " + line;
  return Error(refusal.code(), std::move(message));
}

void tell_of_new_life(const Config& config, const storage::LivingStore& living) {
  const std::string_view reason = !living.loss.is_empty() ? "acknowledged writes are lost"
                                  : config.new_life
                                      ? "--new-life was given"
                                      : "the data directory was copied or put back from a copy";
  diagnostics::warning(
      "{}: a new life of the data begins, life {}. Change feeds go on above all positions that "
      "were ever given out, so consumers see everything that is new, wherever they are; what they "
      "read of the former life may differ from what is here. Nothing has to be done",
      reason, living.life.text());
}

/// The store, in a new life if its directory is a copy. When acknowledged writes are missing, it is
/// refused, and the refusal names the ranges that they were in, unless the configuration accepts
/// that.
Result<std::unique_ptr<storage::Store>> open_store(storage::StoreOptions options,
                                                   const Config& config) {
  const UnixSeconds now = SystemClock().unix_seconds();
  if (config.ephemeral) {
    // One that is removed at exit is never copied back.
    ORRERY_TRY(auto store, storage::Store::open(std::move(options)));
    ORRERY_TRY(storage::open_life(*store, now));
    return store;
  }
  storage::Loss loss;
  auto living = storage::open_living(options, config.new_life, now, &loss);
  if (!living) {
    const auto lines = describe_loss(options, loss);
    if (!config.accepts_loss) return with_lines(living.error(), lines);
    options.accepts_loss = true;
    living = storage::open_living(options, config.new_life, now);
    if (!living) return living.error();
    if (!living->loss.is_empty()) {
      diagnostics::warning("{}. It is accepted that acknowledged writes are gone",
                           living->loss.damage);
      for (const std::string& line : lines) diagnostics::warning("lost: {}", line);
    }
  }
  if (living->has_begun) tell_of_new_life(config, *living);
  return std::move(living->store);
}

class ServerImpl final : public Server {
 public:
  ServerImpl(const Config& config, DescriptorPlan descriptors,
             std::unique_ptr<DataDirectory> directory, std::unique_ptr<storage::Store> store,
             api::Keyring::Keys keys)
      : config_(config),
        descriptors_(descriptors),
        directory_(std::move(directory)),
        store_(std::move(store)),
        commit_log_(*store_),
        committer_(commit_log_, {}),
        environment_{*store_, committer_, writers_, clock_},
        backups_(*store_, clock_,
                 {.directory = config.backup_directory,
                  .version = ORRERY_VERSION,
                  .bytes_per_second_max = config.backup_bytes_per_second}),
        keyring_(std::move(keys)),
        authenticator_(keyring_, clock_, config.check_dates),
        push_(blocking_, config.feed_readers_max, config.feed_heartbeat) {}

  ~ServerImpl() override { stop(std::chrono::milliseconds(0)); }

  Result<> start(std::string endpoint) {
    const catalog::CatalogLimits limits{.shared_throughput_containers_max =
                                            config_.shared_throughput_containers_max};
    ORRERY_TRY(catalog_, catalog::Catalog::open(environment_, api::make_rules, limits));
    committer_.start();
    index_builder_ = std::make_unique<maintenance::IndexBuilder>(environment_, *catalog_);
    catalog_->on_change([this](const Rid& container) { index_builder_->reconcile(container); });
    index_builder_->start();
    reclaimer_ = std::make_unique<maintenance::Reclaimer>(environment_, catalog_->garbage());
    reclaimer_->start();
    range_changes_ = std::make_unique<maintenance::RangeChanges>(environment_, *catalog_);
    auto_split_ = std::make_unique<maintenance::AutoSplit>(
        *catalog_, *range_changes_,
        maintenance::AutoSplitOptions{.range_bytes_max = config_.partition_bytes_max});
    auto_split_->start();
    housekeeper_ = std::make_unique<maintenance::Housekeeper>(
        environment_, *catalog_,
        maintenance::HousekeeperLimits{.history_bytes_max = config_.history_bytes_max});
    housekeeper_->on_erased([this](PartitionNumber partition, std::uint64_t count) {
      compactor_.note_erased(partition, count);
    });
    compactor_.start();
    housekeeper_->start();

    ORRERY_TRY(auto certificate, load_certificate(endpoint));
    http::ListenerOptions options;
    options.tls_certificate_pem = certificate.certificate_pem;
    options.tls_key_pem = std::move(certificate.key_pem);
    options.address = config_.listen_address;
    options.port = config_.listen_port;
    options.threads = config_.threads;
    options.limits.connections_max = descriptors_.connections;
    options.limits.turning_away_max = descriptors_.turning_away;
    options.limits.memory_bytes_max = config_.request_memory_bytes;
    options.limits.request_time_max = config_.request_time_max;
    options.legacy_tls = config_.legacy_tls;

    services_.reset(new api::Services{*catalog_,
                                      *range_changes_,
                                      {.store = *store_,
                                       .clock = clock_,
                                       .suspended = &suspended_queries_,
                                       .scan_helpers = &scan_helpers_,
                                       .vector_indexes = &vector_indexes_},
                                      blocking_,
                                      scans_,
                                      topology_,
                                      clock_,
                                      prefetcher_,
                                      feed_,
                                      push_,
                                      std::move(endpoint),
                                      [this] { return certificate_pem(); },
                                      [this] { return check_ready(); },
                                      [this] { return metrics(); },
                                      index_builder_.get(),
                                      &index_advisor_,
                                      config_.refuses_cross_partition,
                                      &short_queries_,
                                      config_.page_time_max});
    services_->keys = &keyring_;
    services_->reload = [this] { return reload(); };
    services_->shows_account_to_all = config_.shows_account_to_all;
    services_->backups = &backups_;
    services_->checks = &checks_;
    set_certificate(std::move(certificate.certificate_pem));
    if (config_.listens_on_loopback()) {
      services_->hosts = api::HostCheck::this_machine(
          {config_.listen_address, host_of(services_->advertised_endpoint)});
    }
    pipeline_ = std::make_unique<api::Pipeline>(*services_, authenticator_);
    ORRERY_TRY(listener_,
               http::Listener::open(
                   options, [this](http::Request& request) { return pipeline_->handle(request); },
                   [this](const http::Refusal& refusal) { return pipeline_->refuse(refusal); },
                   [this](http::Request& request) { return pipeline_->admit(request); }));
    ORRERY_TRY(open_more_ports(options));
    directory_->describe_holder(endpoint_url("http"));
    listener_->start();
    if (explorer_listener_) explorer_listener_->start();
    if (health_listener_) health_listener_->start();
    return {};
  }

  std::uint16_t port() const override { return listener_->port(); }

  std::string introduction() const override {
    const bool well_known = config_.keys.empty() && config_.key_file.empty();
    const std::string url = services_->advertised_endpoint.empty() ? endpoint_url("http")
                                                                   : services_->advertised_endpoint;
    return fmt::format(
        "orrery {}\n"
        "  data        {}{}{}\n"
        "  endpoint    {}  (and {})\n"
        "  explorer    {}_explorer/\n"
        "  connection  AccountEndpoint={};AccountKey={};\n",
        ORRERY_VERSION, directory_->path().string(),
        directory_->ephemeral() ? " (ephemeral: removed at exit)" : "",
        config_.durability == storage::Durability::Strict
            ? ""
            : " (relaxed durability: the last moments may be lost in a power failure)",
        endpoint_url("http"), endpoint_url("https"), url, url,
        well_known ? kWellKnownKey : std::string_view("<your key>"));
  }

  Result<> reload() override {
    std::lock_guard lock(reload_mutex_);
    ORRERY_TRY(auto keys, read_account_keys(config_));
    // One that the server has made for itself stays.
    if (!config_.tls_certificate.empty()) {
      ORRERY_TRY(auto certificate, load_certificate(services_->advertised_endpoint));
      ORRERY_TRY(listener_->use_certificate(certificate.certificate_pem, certificate.key_pem));
      if (explorer_listener_) {
        ORRERY_TRY(
            explorer_listener_->use_certificate(certificate.certificate_pem, certificate.key_pem));
      }
      set_certificate(std::move(certificate.certificate_pem));
    }
    std::string slots;
    for (const api::AccountKey& key : keys) {
      slots += (slots.empty() ? "" : ", ") + key.slot;
    }
    keyring_.replace(std::move(keys));
    diagnostics::info("keys{} read again; in force: {}",
                      config_.tls_certificate.empty() ? "" : " and certificate", slots);
    return {};
  }

  void stop(std::chrono::milliseconds grace) override {
    if (stopped_) return;
    stopped_ = true;
    // It begins with telling readers that wait for changes, so that nobody keeps it waiting.
    if (listener_) listener_->stop(grace);
    if (explorer_listener_) explorer_listener_->stop(grace);
    if (health_listener_) health_listener_->stop(std::chrono::milliseconds(0));
    push_.room.close();
    backups_.stop();
    checks_.stop();
    // They wait for writers and for the committer, so they go before them.
    if (housekeeper_) housekeeper_->stop();
    compactor_.stop();
    if (index_builder_) index_builder_->stop();
    if (reclaimer_) reclaimer_->stop();
    if (range_changes_) range_changes_->stop();
    if (auto_split_) auto_split_->stop();
    // Splits and merges give up now, but not without the writers.
    topology_.join();
    // Nothing new comes in now. Writers hand over what they have, then the committer finishes it.
    writers_.join();
    committer_.stop();
    live_maps_.stop();
    vector_indexes_.stop();
    short_queries_.join();
    scans_.join();
    suspended_queries_.stop();
    blocking_.join();
    store_->flush();
  }

 private:
  /// Beside the one that `main` is for.
  Result<> open_more_ports(const http::ListenerOptions& main) {
    const auto refuse = [this](const http::Refusal& refusal) { return pipeline_->refuse(refusal); };
    http::ListenerOptions options = main;
    options.threads = 1;
    options.limits.connections_max = kOtherConnectionsMax;
    if (config_.explorer_port != 0) {
      options.port = config_.explorer_port;
      ORRERY_TRY(explorer_listener_,
                 http::Listener::open(
                     options, [this](http::Request& request) { return pipeline_->handle(request); },
                     refuse, [this](http::Request& request) { return pipeline_->admit(request); }));
    }
    if (config_.health_port != 0) {
      options.port = config_.health_port;
      options.tls_certificate_pem.clear();
      options.tls_key_pem.clear();
      ORRERY_TRY(health_listener_, http::Listener::open(
                                       options,
                                       [this](http::Request& request) {
                                         return answer_health(request, blocking_,
                                                              [this] { return check_ready(); });
                                       },
                                       refuse));
    }
    return {};
  }

  std::string endpoint_url(std::string_view scheme) const {
    const std::string& address = config_.listen_address;
    const bool v6 = address.find(':') != std::string::npos;
    return fmt::format("{}://{}{}{}:{}/", scheme, v6 ? "[" : "", address, v6 ? "]" : "",
                       listener_->port());
  }

  Result<http::Certificate> load_certificate(const std::string& endpoint) const {
    if (config_.tls_certificate.empty()) {
      return directory_->certificate(host_of(endpoint), clock_.unix_seconds());
    }
    ORRERY_TRY(auto text, read_file(config_.tls_certificate));
    if (config_.tls_key.empty()) return http::read_pkcs12(text, config_.tls_password);
    ORRERY_TRY(auto key, read_file(config_.tls_key));
    return http::Certificate{std::move(text), std::move(key)};
  }

  std::string certificate_pem() const {
    std::lock_guard lock(certificate_mutex_);
    return certificate_pem_;
  }
  void set_certificate(std::string pem) {
    std::lock_guard lock(certificate_mutex_);
    certificate_pem_ = std::move(pem);
  }

  /// Commits something, to tell the truth; but not more often than this, however many ask.
  Result<> check_ready() {
    constexpr std::chrono::milliseconds kGoodFor{100};
    std::lock_guard lock(ready_mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (committer_.accepts() && now - ready_at_ < kGoodFor) return {};
    ORRERY_TRY(committer_.probe());
    ready_at_ = std::chrono::steady_clock::now();
    return {};
  }

  std::string metrics() const {
    return metrics_text({listener_->stats(), listener_->memory(), pipeline_->stats(), push_,
                         feed_.stats(), live_maps_.stats(), committer_, *catalog_,
                         housekeeper_->stats(), index_builder_->stats(), vector_indexes_.stats(),
                         *store_, keyring_, backups_.stats(), checks_.findings(),
                         config_.durability == storage::Durability::Strict, clock_.unix_seconds()});
  }

  const Config config_;
  const DescriptorPlan descriptors_;
  SystemClock clock_;
  // In the order in which each stands on those before it; destroyed the other way round.
  std::unique_ptr<DataDirectory> directory_;
  std::unique_ptr<storage::Store> store_;
  commitlog::LocalCommitLog commit_log_;
  partition::Committer committer_;
  boost::asio::thread_pool writers_{kWriterThreads};
  boost::asio::thread_pool blocking_{kBlockingThreads};
  BackgroundPool scans_{kScanThreads, [this] { return committer_.is_contended(); }};
  // Nobody waits for writers here, and these are as urgent as what an event loop does itself.
  BackgroundPool short_queries_{kShortQueryThreads, [] { return false; }, {}, 0};
  boost::asio::thread_pool topology_{kTopologyThreads};
  partition::Environment environment_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<maintenance::IndexBuilder> index_builder_;
  std::unique_ptr<maintenance::Reclaimer> reclaimer_;
  std::unique_ptr<maintenance::RangeChanges> range_changes_;
  std::unique_ptr<maintenance::AutoSplit> auto_split_;
  maintenance::Compactor compactor_{*store_};
  maintenance::BackupRunner backups_;
  maintenance::CheckRunner checks_{*store_, api::make_rules, clock_};
  std::unique_ptr<maintenance::Housekeeper> housekeeper_;
  api::Keyring keyring_;
  const api::Authenticator authenticator_;
  feed::Prefetcher prefetcher_;
  feed::LiveMaps live_maps_{*store_, blocking_};
  feed::Reader feed_{*store_, live_maps_};
  feed::Push push_;
  index::Advisor index_advisor_{clock_};
  executor::SuspendedQueries suspended_queries_{blocking_};
  const executor::ScanHelpers scan_helpers_{
      [this](BackgroundPool::Work work) { scans_.post(std::move(work)); }, scan_helpers()};
  index::VectorIndexes vector_indexes_{
      *store_, [this](std::function<void()> work) { scans_.post(std::move(work)); },
      config_.vector_index_bytes_max};
  std::unique_ptr<api::Services> services_;
  std::unique_ptr<api::Pipeline> pipeline_;
  std::unique_ptr<http::Listener> listener_;
  std::unique_ptr<http::Listener> explorer_listener_;
  std::unique_ptr<http::Listener> health_listener_;
  std::mutex reload_mutex_;
  mutable std::mutex certificate_mutex_;
  std::string certificate_pem_;  // Guarded by certificate_mutex_.
  std::mutex ready_mutex_;
  std::chrono::steady_clock::time_point ready_at_{};  // Guarded by ready_mutex_.
  bool stopped_ = false;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::open(const Config& given) {
  Config config = given;
  if (config.threads == 0) config.threads = std::max(1u, std::thread::hardware_concurrency());
  if (config.request_memory_bytes == 0) config.request_memory_bytes = default_request_memory();
  if (config.tls_certificate.empty() && !config.tls_key.empty()) {
    return Error(ErrorCode::BadRequest, "--tls-key goes with --tls-cert: give both or neither");
  }
  // Before the store is opened, which takes its share.
  const auto files = raise_descriptor_limit();
  ORRERY_TRY(const auto descriptors, plan_descriptors(files, config.connections_max));
  if (descriptors.connections < config.connections_max) {
    diagnostics::info(
        "the limit of {} open files leaves room for {} connections, not for {} (--connections-max)",
        files, descriptors.connections, config.connections_max);
  }
  ORRERY_TRY(auto keys, read_account_keys(config));
  ORRERY_TRY(auto endpoint, checked_endpoint(config.advertised_endpoint));
  ORRERY_TRY(auto directory, config.ephemeral ? DataDirectory::make_ephemeral()
                                              : DataDirectory::open(config.data_directory));
  if (!config.backup_directory.empty()) {
    config.backup_directory = std::filesystem::absolute(config.backup_directory);
    ORRERY_TRY(check_backup_directory(config.backup_directory, directory->path()));
  }
  storage::StoreOptions options;
  options.directory = directory->path();
  options.durability = config.durability;
  options.cache_bytes = config.cache_bytes;
  ORRERY_TRY(auto store, open_store(std::move(options), config));
  if (config.durability == storage::Durability::Relaxed) {
    diagnostics::warning(
        "durability is relaxed: writes are acknowledged before they are on the disk, "
        "and a power failure may lose the last of them");
  }
  if (config.legacy_tls) {
    diagnostics::warning(
        "--legacy-tls: TLS 1.0 with weak ciphers is admitted. For old SDKs on a "
        "machine of your own, not for a network");
  }
  auto server = std::make_unique<ServerImpl>(config, descriptors, std::move(directory),
                                             std::move(store), std::move(keys));
  ORRERY_TRY(server->start(std::move(endpoint)));
  return server;
}

}  // namespace orrery::server
