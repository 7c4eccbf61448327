// RocksDB alone, in one process, with the records that the server writes: the baseline of
// the ratios `create-vs-rocksdb`, `read-feed` and `query-aggregate`.
//
//   rocksdb_baseline commit --dir D [--clients 64] [--seconds 10] [--doc-bytes 1024]
//   rocksdb_baseline scan   --dir D [--passes 3] [--family log] [--member NAME]
//
// With --member the documents of the log are parsed on demand as far as to that number, and it is
// added up.
//
// Prints one JSON object.

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <simdjson.h>

#include "storage/records.h"

namespace {

using SteadyClock = std::chrono::steady_clock;

[[noreturn]] void fail(std::string_view what) {
  std::fprintf(stderr, "rocksdb_baseline: %.*s\n", static_cast<int>(what.size()), what.data());
  std::exit(1);
}

void check(const rocksdb::Status& status) {
  if (!status.ok()) fail(status.ToString());
}

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <typename Integer>
void append_big_endian(std::string& out, Integer value) {
  for (int shift = static_cast<int>(sizeof(Integer)) * 8 - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift));
  }
}

struct Options {
  std::string mode;
  std::string dir;
  std::string family = "log";
  std::string member;
  int clients = 64;
  int passes = 3;
  double seconds = 10;
  std::size_t doc_bytes = 1024;
};

Options parse(int argc, char** argv) {
  if (argc < 2) fail("usage: rocksdb_baseline commit|scan --dir D [options]");
  Options options;
  options.mode = argv[1];
  if (argc % 2 != 0) fail("every option takes a value");
  for (int i = 2; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--dir")
      options.dir = value;
    else if (name == "--family")
      options.family = value;
    else if (name == "--member")
      options.member = value;
    else if (name == "--clients")
      options.clients = std::atoi(value);
    else if (name == "--passes")
      options.passes = std::atoi(value);
    else if (name == "--seconds")
      options.seconds = std::atof(value);
    else if (name == "--doc-bytes")
      options.doc_bytes = static_cast<std::size_t>(std::atoi(value));
    else
      fail("unknown option " + std::string(name));
  }
  if (options.dir.empty()) fail("--dir is missing");
  return options;
}

// The settings that measured best for this work; see the measured facts in docs/benchmarks.md.
rocksdb::ColumnFamilyOptions log_family() {
  rocksdb::ColumnFamilyOptions options;
  options.compression = rocksdb::kLZ4Compression;
  options.write_buffer_size = 128 << 20;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 32 << 10;
  table.checksum = rocksdb::kXXH3;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::ColumnFamilyOptions lookup_family() {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 4 << 10;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

struct Store {
  std::unique_ptr<rocksdb::DB> db;
  rocksdb::ColumnFamilyHandle* log = nullptr;
  rocksdb::ColumnFamilyHandle* ids = nullptr;
  rocksdb::ColumnFamilyHandle* rids = nullptr;
  rocksdb::ColumnFamilyHandle* heads = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;

  ~Store() {
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
  }
};

void open_for_commits(const std::string& dir, Store& store) {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.bytes_per_sync = 1 << 20;
  const std::vector<rocksdb::ColumnFamilyDescriptor> families = {
      {rocksdb::kDefaultColumnFamilyName, {}},
      {"log", log_family()},
      {"ids", lookup_family()},
      {"rids", lookup_family()},
      {"heads", {}},
  };
  rocksdb::DB* db = nullptr;
  check(rocksdb::DB::Open(options, dir, families, &store.handles, &db));
  store.db.reset(db);
  store.log = store.handles[1];
  store.ids = store.handles[2];
  store.rids = store.handles[3];
  store.heads = store.handles[4];
}

// One client's document on its way through the committer. The client waits on its own condition
// variable, so that a group wakes exactly the clients it answers.
struct Submission {
  std::string document;
  std::uint64_t number = 0;
  std::mutex mutex;
  std::condition_variable answered;
  bool done = false;
};

struct Queue {
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<Submission*> staged;
  bool closed = false;
};

class Committer {
 public:
  explicit Committer(Store& store) : store_(store) {}

  void run(Queue& queue) {
    std::vector<Submission*> group;
    for (;;) {
      group.clear();
      {
        std::unique_lock lock(queue.mutex);
        queue.arrived.wait(lock, [&] { return queue.closed || !queue.staged.empty(); });
        if (queue.staged.empty()) return;
        group.swap(queue.staged);
      }
      commit(group);
      for (auto* submission : group) {
        // Notified under the lock: the client may destroy its submission once it sees `done`.
        const std::lock_guard lock(submission->mutex);
        submission->done = true;
        submission->answered.notify_one();
      }
    }
  }

  std::uint64_t groups() const { return groups_; }

 private:
  static constexpr std::uint32_t kPartition = 1;

  void commit(const std::vector<Submission*>& group) {
    batch_.Clear();
    for (auto* submission : group) {
      ++head_;
      std::string key;
      append_big_endian(key, kPartition);
      append_big_endian(key, head_);
      append_big_endian(key, std::uint32_t{0});
      check(batch_.Put(store_.log, key, submission->document));  // 16 byte key

      key.clear();
      append_big_endian(key, kPartition);
      append_big_endian(key, submission->number * 0x9E3779B97F4A7C15ull);  // the hash of a key
      append_big_endian(key, submission->number);
      char id[48];
      std::snprintf(id, sizeof(id), "k%06llu/doc-%028llu",
                    static_cast<unsigned long long>(submission->number % 1000),
                    static_cast<unsigned long long>(submission->number));
      key.append(id);  // 20 + 40 bytes
      const std::string position(40, 'p');
      check(batch_.Put(store_.ids, key, position));

      key.clear();
      append_big_endian(key, kPartition);
      append_big_endian(key, submission->number);
      check(batch_.Put(store_.rids, key, std::string_view(position).substr(0, 12)));
    }
    std::string partition;
    append_big_endian(partition, kPartition);
    check(batch_.Put(store_.heads, partition, std::string(40, 'h')));
    rocksdb::WriteOptions durable;
    durable.sync = true;
    check(store_.db->Write(durable, &batch_));
    ++groups_;
  }

  Store& store_;
  rocksdb::WriteBatch batch_;
  std::uint64_t head_ = static_cast<std::uint64_t>(
      std::chrono::system_clock::now().time_since_epoch().count());  // above every earlier run's
  std::uint64_t groups_ = 0;
};

void run_commit(const Options& options) {
  Store store;
  open_for_commits(options.dir, store);
  Queue queue;
  Committer committer(store);
  std::thread committer_thread([&] { committer.run(queue); });

  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> next_number{
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count())};
  std::atomic<std::uint64_t> documents{0};
  std::vector<std::thread> clients;
  const double cpu_before = cpu_seconds();
  const auto start = SteadyClock::now();
  for (int i = 0; i < options.clients; ++i) {
    clients.emplace_back([&] {
      // Half of a document repeats from one to the next, as JSON does: LZ4 has something to do.
      std::string text(options.doc_bytes, 'x');
      std::uint64_t mine = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        Submission submission;
        submission.number = next_number.fetch_add(1);
        std::uint64_t state = submission.number;
        for (std::size_t at = 0; at + 8 <= text.size() / 2; at += 8) {
          state = state * 6364136223846793005ull + 1442695040888963407ull;
          for (int byte = 0; byte < 8; ++byte) {
            text[at + static_cast<std::size_t>(byte)] =
                static_cast<char>('a' + (state >> (8 * byte + 3)) % 26);
          }
        }
        submission.document = text;
        {
          const std::lock_guard lock(queue.mutex);
          queue.staged.push_back(&submission);
        }
        queue.arrived.notify_one();
        std::unique_lock lock(submission.mutex);
        submission.answered.wait(lock, [&] { return submission.done; });
        ++mine;
      }
      documents.fetch_add(mine);
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  stop = true;
  for (auto& client : clients) client.join();
  const double seconds = seconds_since(start);
  {
    const std::lock_guard lock(queue.mutex);
    queue.closed = true;
  }
  queue.arrived.notify_one();
  committer_thread.join();

  const auto count = static_cast<double>(documents.load());
  std::printf(
      "{\"mode\":\"commit\",\"documents\":%.0f,\"seconds\":%.3f,\"per_second\":%.1f,"
      "\"documents_per_group\":%.1f,\"cpu_us_per_document\":%.2f}\n",
      count, seconds, count / seconds, count / static_cast<double>(committer.groups()),
      (cpu_seconds() - cpu_before) * 1e6 / count);
}

// RocksDB would keep its own diagnostics in the directory, which here is a server's.
class Silent : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// Adds up one number of each document, and reads no more of it than is needed for that.
class MemberSum {
 public:
  explicit MemberSum(std::string name) : name_(std::move(name)) {}

  void add(std::string_view record) {
    const auto version = orrery::storage::VersionRecord::parse(record);
    if (!version) fail("the log has a record that is none");
    // The parser reads beyond the end, in whole words.
    const std::string_view text = version->text;
    if (padded_.size() < text.size() + simdjson::SIMDJSON_PADDING) {
      padded_.resize(text.size() + simdjson::SIMDJSON_PADDING);
    }
    text.copy(padded_.data(), text.size());
    simdjson::ondemand::document document;
    double number = 0;
    if (parser_.iterate(padded_.data(), text.size(), padded_.size()).get(document) !=
            simdjson::SUCCESS ||
        document[name_].get(number) != simdjson::SUCCESS) {
      fail("a document has no number at " + name_);
    }
    sum_ += number;
  }
  double sum() const { return sum_; }

 private:
  std::string name_;
  std::string padded_;
  simdjson::ondemand::parser parser_;
  double sum_ = 0;
};

// Opened read-only, so that a running, idle server keeps its store. Nothing but the names of the
// families is known here; how a file is compressed and checked is written in the file.
void run_scan(const Options& options) {
  std::vector<std::string> names;
  check(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), options.dir, &names));
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  std::size_t wanted = names.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    families.push_back({names[i], rocksdb::ColumnFamilyOptions()});
    if (names[i] == options.family) wanted = i;
  }
  if (wanted == names.size()) fail("no column family " + options.family + " in " + options.dir);
  Store store;
  rocksdb::DB* db = nullptr;
  rocksdb::DBOptions db_options;
  db_options.info_log = std::make_shared<Silent>();
  check(rocksdb::DB::OpenForReadOnly(db_options, options.dir, families, &store.handles, &db));
  store.db.reset(db);

  rocksdb::ReadOptions read;
  read.fill_cache = false;
  read.readahead_size = 2 << 20;
  std::vector<double> rates;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  std::uint64_t touched = 0;
  MemberSum sum(options.member);
  for (int pass = 0; pass <= options.passes; ++pass) {  // pass 0 warms the page cache
    documents = 0;
    bytes = 0;
    const auto start = SteadyClock::now();
    const std::unique_ptr<rocksdb::Iterator> it(store.db->NewIterator(read, store.handles[wanted]));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      const rocksdb::Slice value = it->value();
      if (!options.member.empty()) sum.add({value.data(), value.size()});
      // One byte of every cache line: the value is really there, and nothing more is done with it.
      for (std::size_t at = 0; options.member.empty() && at < value.size(); at += 64) {
        touched += static_cast<unsigned char>(value[at]);
      }
      ++documents;
      bytes += value.size();
    }
    check(it->status());
    if (pass > 0) rates.push_back(static_cast<double>(documents) / seconds_since(start));
  }
  if (rates.empty()) fail("--passes must be positive");
  std::sort(rates.begin(), rates.end());
  std::printf(
      "{\"mode\":\"scan\",\"documents\":%llu,\"bytes\":%llu,\"passes\":%zu,\"per_second\":%.1f,"
      "\"per_second_min\":%.1f,\"per_second_max\":%.1f,\"touched\":%llu,"
      "\"sum_of_a_pass\":%.0f}\n",
      static_cast<unsigned long long>(documents), static_cast<unsigned long long>(bytes),
      rates.size(), rates[rates.size() / 2], rates.front(), rates.back(),
      static_cast<unsigned long long>(touched), sum.sum() / (options.passes + 1));
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.mode == "commit")
    run_commit(options);
  else if (options.mode == "scan")
    run_scan(options);
  else
    fail("unknown mode " + options.mode);
}
