// Puts load on a server with as little of the machine as possible: epoll, keep-alive HTTP/1.1, one
// request in flight per connection, requests signed before the clock starts.
//
//   orrery_load create|fill|upsert|lines|read|feed|changes|pages|query|rows|get --port P [options]
//
//   create   new documents for --seconds, or until --count of them exist
//   fill     --count new documents, as fast as the server takes them
//   upsert   new versions of documents at random, out of the first --ids
//   lines    new documents, the lines of --file from line --first on, with their member "pk" as key
//   read     point reads, at random, of the first --ids documents
//   feed     the whole read feed of the container, page after page on one connection
//   changes  the whole change feed of range --range, likewise; of several (0,1,2) at the same time,
//            each on a connection of its own
//   pages    change feed pages of --page-size from random positions below --ids;
//            of one key with --partition-key
//   query    --query again and again; @n is a number below --ids at random, @id and @pk are of the
//            document of that number; with --by-key 1 only its key is asked
//   rows     --query once, all its pages, on one connection
//   get      GET --path with the same headers as a point read, for other servers
//
// Prints one JSON object. A status that the mode does not expect is counted as an error, shown on
// standard error with its body, and makes the exit status 1.

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client.h"

namespace {

using namespace bench;

struct Options : Target {
  std::string mode;
  std::string path = "/";
  std::string id_prefix = "doc";
  std::string key = kKey;
  int connections = 64;
  int threads = 1;
  double seconds = 0;
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  std::uint64_t ids = 10000;
  std::uint64_t keys = 1000;
  std::size_t doc_bytes = 1024;
  std::string page_size = "-1";
  std::string range = "0";
  std::string partition_key;  // as JSON array
  std::string query;
  std::string access;  // scan or index; empty: as the server likes
  bool by_key = false;
  std::string file;
  std::vector<std::string> lines;  // of the file, from `first` on

  bool creates() const {
    return mode == "create" || mode == "fill" || mode == "upsert" || mode == "lines";
  }
  bool feeds() const { return mode == "feed" || mode == "changes" || mode == "rows"; }
  bool queries() const { return mode == "query" || mode == "rows"; }
};

/// As many as `count` says, or all when it is 0, after the first ones.
std::vector<std::string> read_lines(const std::string& path, std::uint64_t first,
                                    std::uint64_t count) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("can't read " + path);
  std::vector<std::string> lines;
  std::uint64_t number = 0;
  for (std::string line; (count == 0 || lines.size() < count) && std::getline(in, line);) {
    if (number++ >= first) lines.push_back(std::move(line));
  }
  if (lines.empty()) fail("there are no lines in " + path + " from --first on");
  return lines;
}

Options parse_options(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0)
    fail("usage: orrery_load create|fill|upsert|lines|read|feed|changes|pages|query|rows|get …");
  Options options;
  options.mode = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* value = argv[i + 1];
    const auto number = [&] { return std::strtoull(value, nullptr, 10); };
    if (options.take(name, value)) continue;
    if (name == "--path") {
      options.path = value;
    } else if (name == "--id-prefix") {
      options.id_prefix = value;
    } else if (name == "--key") {
      options.key = value;
    } else if (name == "--connections") {
      options.connections = std::atoi(value);
    } else if (name == "--threads") {
      options.threads = std::atoi(value);
    } else if (name == "--seconds") {
      options.seconds = std::atof(value);
    } else if (name == "--count") {
      options.count = number();
    } else if (name == "--first") {
      options.first = number();
    } else if (name == "--ids") {
      options.ids = number();
    } else if (name == "--keys") {
      options.keys = number();
    } else if (name == "--doc-bytes") {
      options.doc_bytes = number();
    } else if (name == "--page-size") {
      options.page_size = value;
    } else if (name == "--range") {
      options.range = value;
    } else if (name == "--partition-key") {
      options.partition_key = value;
    } else if (name == "--query") {
      options.query = value;
    } else if (name == "--access") {
      options.access = value;
    } else if (name == "--by-key") {
      options.by_key = number() != 0;
    } else if (name == "--file") {
      options.file = value;
    } else {
      fail("unknown option " + std::string(name));
    }
  }
  const auto& mode = options.mode;
  if (!options.creates() && !options.feeds() && !options.queries() && mode != "read" &&
      mode != "pages" && mode != "get") {
    fail("unknown mode " + mode);
  }
  if (options.queries() && options.query.empty()) fail(mode + " needs --query");
  if (options.query.find_first_of("\"\\\n") != std::string::npos) {
    fail("--query is sent as it is within JSON: no double quotes, backslashes or line breaks");
  }
  if (mode == "lines") {
    options.lines = read_lines(options.file, options.first, options.count);
    options.count = options.lines.size();
  }
  if (mode == "fill" && options.count == 0) fail("fill needs --count");
  if (!options.feeds() && options.count == 0 && options.seconds <= 0) {
    fail("--seconds or --count is needed");
  }
  if (options.connections < 1 || options.threads < 1 || options.keys < 1 || options.ids < 1) {
    fail("--connections, --threads, --keys and --ids must be positive");
  }
  options.threads = std::min(options.threads, options.connections);
  return options;
}

// ── Requests ───────────────────────────────────────────────────────────────────────────────────

// Ids and keys have a fixed width, so that a create is its template with two numbers written over.
std::string padded(std::uint64_t number, int width) {
  char text[32];
  std::snprintf(text, sizeof(text), "%0*llu", width, static_cast<unsigned long long>(number));
  return text;
}
constexpr int kIdDigits = 10;
constexpr int kKeyDigits = 6;

std::string id_of(const Options& options, std::uint64_t number) {
  return options.id_prefix + "-" + padded(number, kIdDigits);
}
std::string key_of(const Options& options, std::uint64_t number) {
  return "k" + padded(number % options.keys, kKeyDigits);
}

// Makes the requests of one mode. Each thread has its own.
class Requests {
 public:
  Requests(const Options& options, const Signer& signer, unsigned seed)
      : options_(options), random_(seed) {
    if (options.mode == "lines") {
      create_head_ = head(options, signer, "POST", "/" + options.container_link() + "/docs",
                          signer.authorization("post", "docs", options.container_link())) +
                     "content-type: application/json\r\nx-ms-documentdb-partitionkey: [\"";
    } else if (options.creates()) {
      prepare_create(signer);
    } else if (options.queries()) {
      prepare_queries(signer);
    } else if (options.mode == "read") {
      prepare_reads(signer);
    } else if (options.mode == "pages") {
      prepare_pages(signer);
    } else if (options.feeds()) {
      feed_head_ = feed_head(signer);
    } else {
      prepared_.push_back(head(options, signer, "GET", options.path,
                               signer.authorization("get", "docs", options.path)) +
                          "x-ms-documentdb-partitionkey: [\"k000000\"]\r\n\r\n");
    }
  }

  /// The bytes of request number `number`, valid until the next call.
  std::string_view create(std::uint64_t number) {
    if (options_.mode == "lines") return create_line(options_.lines[number - options_.first]);
    if (options_.mode == "upsert") number = options_.first + random_() % options_.ids;
    const std::string id = padded(number, kIdDigits);
    const std::string key = padded(number % options_.keys, kKeyDigits);
    std::memcpy(&create_[id_at_], id.data(), id.size());
    std::memcpy(&create_[key_at_], key.data(), key.size());
    std::memcpy(&create_[key_header_at_], key.data(), key.size());
    // Words that differ from document to document: otherwise compression makes them weigh nothing.
    for (std::size_t at = noise_at_; at + 8 <= noise_end_; at += 8) {
      std::uint64_t bits = random_();
      for (std::size_t i = 0; i < 8; ++i, bits >>= 8) {
        create_[at + i] = static_cast<char>('a' + (bits & 15));
      }
    }
    return create_;
  }

  std::string_view read() { return prepared_[random_() % prepared_.size()]; }

  std::string feed(std::string_view position) const {
    if (options_.mode == "rows") return query(feed_head_, 0, position);
    std::string out = feed_head_;
    if (!position.empty()) {
      out += options_.mode == "changes" ? "if-none-match: " : "x-ms-continuation: ";
      out.append(position).append("\r\n");
    }
    return out + "\r\n";
  }

 private:
  /// A document as it stands there, with its own key.
  std::string_view create_line(const std::string& line) {
    constexpr std::string_view kKeyMember = "\"pk\":\"";
    const std::size_t begin = line.find(kKeyMember) + kKeyMember.size();
    if (begin < kKeyMember.size()) fail("a line without \"pk\": " + line.substr(0, 80));
    create_ = create_head_ + line.substr(begin, line.find('"', begin) - begin) +
              "\"]\r\ncontent-length: " + std::to_string(line.size()) + "\r\n\r\n" + line;
    return create_;
  }

  std::string query_head(const Signer& signer) const {
    std::string out = head(options_, signer, "POST", "/" + options_.container_link() + "/docs",
                           signer.authorization("post", "docs", options_.container_link()));
    out += "content-type: application/query+json\r\nx-ms-documentdb-isquery: True\r\n";
    out += "x-ms-documentdb-query-enablecrosspartition: True\r\n";
    out += "x-orrery-cross-partition-queries: serve\r\n";
    out += "x-ms-max-item-count: " + options_.page_size + "\r\n";
    if (!options_.access.empty()) out += "x-orrery-query-access: " + options_.access + "\r\n";
    return out;
  }

  /// The query with the parameters that it names.
  std::string query(const std::string& query_head, std::uint64_t number,
                    std::string_view position) const {
    std::string values;
    const auto add = [&](const std::string& name, const std::string& json) {
      if (options_.query.find(name) == std::string::npos) return;
      values +=
          (values.empty() ? "{\"name\":\"" : ",{\"name\":\"") + name + "\",\"value\":" + json + "}";
    };
    add("@n", std::to_string(number));
    add("@id", "\"" + id_of(options_, number) + "\"");
    add("@pk", "\"" + key_of(options_, number) + "\"");
    const std::string body =
        "{\"query\":\"" + options_.query + "\",\"parameters\":[" + values + "]}";
    std::string out = query_head;
    if (options_.by_key) {
      out += "x-ms-documentdb-partitionkey: [\"" + key_of(options_, number) + "\"]\r\n";
    }
    if (!position.empty()) out.append("x-ms-continuation: ").append(position).append("\r\n");
    return out + "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  void prepare_queries(const Signer& signer) {
    feed_head_ = query_head(signer);
    if (options_.mode == "rows") return;
    constexpr int kQueries = 4096;
    for (int i = 0; i < kQueries; ++i) {
      prepared_.push_back(query(feed_head_, options_.first + random_() % options_.ids, {}));
    }
  }

  std::string feed_head(const Signer& signer) const {
    std::string out = head(options_, signer, "GET", "/" + options_.container_link() + "/docs",
                           signer.authorization("get", "docs", options_.container_link()));
    out += "x-ms-max-item-count: " + options_.page_size + "\r\n";
    if (options_.mode != "feed") {
      out += "a-im: Incremental feed\r\n";
      out += options_.partition_key.empty()
                 ? "x-ms-documentdb-partitionkeyrangeid: " + options_.range + "\r\n"
                 : "x-ms-documentdb-partitionkey: " + options_.partition_key + "\r\n";
    }
    return out;
  }

  void prepare_pages(const Signer& signer) {
    constexpr int kPositions = 4096;
    for (int i = 0; i < kPositions; ++i) {
      const std::uint64_t position = random_() % options_.ids;
      prepared_.push_back(feed_head(signer) + "if-none-match: \"" + std::to_string(position) +
                          "\"\r\n\r\n");
    }
  }

  void prepare_create(const Signer& signer) {
    std::string body = "{\"id\":\"" + options_.id_prefix + "-";
    const std::size_t id_at = body.size();
    body += padded(0, kIdDigits) + "\",\"pk\":\"k";
    const std::size_t key_at = body.size();
    body += padded(0, kKeyDigits) +
            "\",\"kind\":\"order\",\"quantity\":3,\"price\":12.5,\"paid\":true,"
            "\"customer\":{\"name\":\"Tycho Brahe\",\"city\":\"Uraniborg\"},\"tags\":[\"a\",\"b\"],"
            "\"note\":\"";
    const std::size_t noise_at = body.size();
    const std::size_t tail = std::string_view("\",\"text\":\"\"}").size();
    const std::size_t rest =
        options_.doc_bytes > body.size() + tail ? options_.doc_bytes - body.size() - tail : 0;
    body.append(rest / 2, 'n');
    const std::size_t noise_end = body.size();
    body += "\",\"text\":\"";
    for (std::size_t i = 0; i < rest - rest / 2; ++i) body.push_back("the stars move on "[i % 18]);
    body += "\"}";

    create_ = head(options_, signer, "POST", "/" + options_.container_link() + "/docs",
                   signer.authorization("post", "docs", options_.container_link()));
    if (options_.mode == "upsert") create_ += "x-ms-documentdb-is-upsert: true\r\n";
    create_ += "content-type: application/json\r\nx-ms-documentdb-partitionkey: [\"k";
    key_header_at_ = create_.size();
    create_ += padded(0, kKeyDigits) + "\"]\r\ncontent-length: " + std::to_string(body.size()) +
               "\r\n\r\n";
    id_at_ = create_.size() + id_at;
    key_at_ = create_.size() + key_at;
    noise_at_ = create_.size() + noise_at;
    noise_end_ = create_.size() + noise_end;
    create_ += body;
  }

  void prepare_reads(const Signer& signer) {
    for (std::uint64_t i = 0; i < options_.ids; ++i) {
      const std::uint64_t number = options_.first + i;
      const std::string link = options_.container_link() + "/docs/" + id_of(options_, number);
      prepared_.push_back(
          head(options_, signer, "GET", "/" + link, signer.authorization("get", "docs", link)) +
          "x-ms-documentdb-partitionkey: [\"" + key_of(options_, number) + "\"]\r\n\r\n");
    }
  }

  const Options& options_;
  std::mt19937_64 random_;
  std::string create_;
  std::string create_head_;  // of lines, up to the key
  std::size_t id_at_ = 0, key_at_ = 0, key_header_at_ = 0, noise_at_ = 0, noise_end_ = 0;
  std::vector<std::string> prepared_;
  std::string feed_head_;
};

// ── Load ───────────────────────────────────────────────────────────────────────────────────────

struct Totals {
  std::uint64_t requests = 0;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;
  std::vector<std::uint32_t> latencies_us;

  void add(const Totals& other) {
    requests += other.requests;
    documents += other.documents;
    bytes += other.bytes;
    errors += other.errors;
    latencies_us.insert(latencies_us.end(), other.latencies_us.begin(), other.latencies_us.end());
  }
};

// Shared by all threads: the next number to create, the requests still to send, the deadline.
struct Schedule {
  std::atomic<std::uint64_t> next;
  std::uint64_t end;  // one past the last request
  SteadyClock::time_point deadline;
  std::atomic<int> complaints{0};

  bool take(std::uint64_t& number) {
    number = next.fetch_add(1, std::memory_order_relaxed);
    return number < end && SteadyClock::now() < deadline;
  }
};

constexpr int kComplaintsMax = 5;

void complain(Schedule& schedule, int status, std::string_view body) {
  if (schedule.complaints.fetch_add(1) >= kComplaintsMax) return;
  std::fprintf(stderr, "orrery_load: status %d: %.*s\n", status,
               static_cast<int>(std::min<std::size_t>(body.size(), 400)), body.data());
}

struct Connection {
  int fd = -1;
  std::size_t filled = 0;
  SteadyClock::time_point sent;
  std::vector<char> buffer = std::vector<char>(16 << 10);
};

// One thread's share of the connections, one request in flight on each.
class Worker {
 public:
  Worker(const Options& options, const Signer& signer, Schedule& schedule, int connections,
         unsigned seed)
      : options_(options),
        requests_(options, signer, seed),
        schedule_(schedule),
        connections_(static_cast<std::size_t>(connections)) {
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    for (auto& connection : connections_) {
      connection.fd = connect_to(options);
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.ptr = &connection;
      if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event) != 0) fail("epoll_ctl");
    }
  }

  void run() {
    for (auto& connection : connections_) send_next(connection);
    epoll_event events[256];
    while (in_flight_ > 0) {
      const int ready = ::epoll_wait(epoll_, events, 256, kSilenceMaxMs);
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) fail("the server has not answered for 30 seconds");
      for (int i = 0; i < ready; ++i) receive(*static_cast<Connection*>(events[i].data.ptr));
    }
    for (auto& connection : connections_) ::close(connection.fd);
    ::close(epoll_);
  }

  Totals totals;

 private:
  static constexpr int kSilenceMaxMs = 30'000;

  void send_next(Connection& connection) {
    std::uint64_t number = 0;
    if (!schedule_.take(number)) return;
    ++in_flight_;
    connection.filled = 0;
    connection.sent = SteadyClock::now();
    send_all(connection.fd, options_.creates() ? requests_.create(number) : requests_.read());
  }

  void receive(Connection& connection) {
    auto& buffer = connection.buffer;
    if (connection.filled == buffer.size()) buffer.resize(buffer.size() * 2);
    const ssize_t got = ::recv(connection.fd, buffer.data() + connection.filled,
                               buffer.size() - connection.filled, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) fail("the server closed a connection");
    connection.filled += static_cast<std::size_t>(got);
    const std::string_view bytes(buffer.data(), connection.filled);
    Head head;
    if (!parse_head(bytes, head) || bytes.size() < head.size + head.body) return;
    if (bytes.size() > head.size + head.body) fail("more bytes than one response");
    --in_flight_;
    ++totals.requests;
    totals.bytes += bytes.size();
    totals.latencies_us.push_back(static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - connection.sent)
            .count()));
    const int expected = options_.creates() && options_.mode != "upsert" ? 201 : 200;
    if (head.status == expected) {
      const bool brings_many = options_.mode == "pages" || options_.mode == "query";
      totals.documents += brings_many ? head.item_count : 1;
    } else {
      ++totals.errors;
      complain(schedule_, head.status, bytes.substr(head.size));
    }
    if (head.closes) fail("the server wants to close a connection");
    send_next(connection);
  }

  const Options& options_;
  Requests requests_;
  Schedule& schedule_;
  std::vector<Connection> connections_;
  int epoll_ = -1;
  int in_flight_ = 0;
};

// Pages are counted by x-ms-item-count and thrown away: the buffer is reused, nothing is parsed.
Totals run_feed(const Options& options, const Signer& signer, Schedule& schedule) {
  const Requests requests(options, signer, 1);
  Totals totals;
  const int fd = connect_to(options);
  std::vector<char> buffer(8 << 20);
  std::string continuation;
  for (;;) {
    const auto sent = SteadyClock::now();
    send_all(fd, requests.feed(continuation));
    Head head;
    const std::size_t filled = receive_response(fd, buffer, head);
    ++totals.requests;
    totals.bytes += filled;
    totals.latencies_us.push_back(static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - sent).count()));
    if (head.status == 304) break;
    if (head.status != 200) {
      ++totals.errors;
      complain(schedule, head.status, {buffer.data() + head.size, head.body});
      break;
    }
    totals.documents += head.item_count;
    continuation = std::string(options.mode == "changes" ? head.etag : head.continuation);
    if (continuation.empty() || SteadyClock::now() >= schedule.deadline) break;
  }
  ::close(fd);
  return totals;
}

std::vector<Options> one_for_each_range(const Options& options) {
  std::vector<Options> readers;
  std::string_view ids = options.range;
  while (true) {
    readers.push_back(options);
    readers.back().range = ids.substr(0, ids.find(','));
    if (ids.find(',') == std::string_view::npos) return readers;
    ids.remove_prefix(ids.find(',') + 1);
  }
}

double percentile_us(std::vector<std::uint32_t>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(last * share)];
}

int report(const Options& options, Totals& totals, double seconds) {
  std::sort(totals.latencies_us.begin(), totals.latencies_us.end());
  std::printf(
      "{\"mode\":\"%s\",\"connections\":%d,\"requests\":%llu,\"documents\":%llu,\"bytes\":%llu,"
      "\"seconds\":%.3f,\"requests_per_second\":%.1f,\"per_second\":%.1f,\"errors\":%llu,"
      "\"p50_us\":%.0f,\"p99_us\":%.0f,\"max_us\":%.0f}\n",
      options.mode.c_str(), options.feeds() ? 1 : options.connections,
      static_cast<unsigned long long>(totals.requests),
      static_cast<unsigned long long>(totals.documents),
      static_cast<unsigned long long>(totals.bytes), seconds,
      static_cast<double>(totals.requests) / seconds,
      static_cast<double>(totals.documents) / seconds,
      static_cast<unsigned long long>(totals.errors), percentile_us(totals.latencies_us, 0.5),
      percentile_us(totals.latencies_us, 0.99), percentile_us(totals.latencies_us, 1.0));
  return totals.errors == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const Signer signer(options.key);
  Schedule schedule{
      .next = options.first,
      .end = options.count == 0 ? UINT64_MAX : options.first + options.count,
      .deadline = SteadyClock::time_point::max(),
  };
  std::vector<std::unique_ptr<Worker>> workers;
  if (!options.feeds()) {
    for (int i = 0; i < options.threads; ++i) {
      const int share = options.connections / options.threads +
                        (i < options.connections % options.threads ? 1 : 0);
      workers.push_back(
          std::make_unique<Worker>(options, signer, schedule, share, static_cast<unsigned>(i + 1)));
    }
  }
  const auto start = SteadyClock::now();
  if (options.seconds > 0) {
    schedule.deadline = start + std::chrono::duration_cast<SteadyClock::duration>(
                                    std::chrono::duration<double>(options.seconds));
  }
  Totals totals;
  std::vector<Options> readers;
  if (options.feeds()) readers = one_for_each_range(options);
  std::vector<Totals> read(readers.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    threads.emplace_back([&, i] { read[i] = run_feed(readers[i], signer, schedule); });
  }
  for (auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });
  for (auto& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  for (const Totals& each : read) totals.add(each);
  for (const auto& worker : workers) totals.add(worker->totals);
  return report(options, totals, seconds);
}
