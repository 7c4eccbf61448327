// Measures how soon, and at what cost, a change reaches those who wait for it.
//
//   orrery_push stream|poll --port P --readers N --rate WRITES --seconds S [--pid SERVER]
//
// One thread writes documents at a steady rate and notes when each was acknowledged; another one
// has N readers, each on a connection of its own, all of one range, with a stream of changes
// (lines) or with long polls, and notes when each of them has each document. With the process id of
// the server its processor time is told per document delivered, and its memory per reader.
//
// Prints one JSON object. Exit status 1 when a reader missed something or got it twice.

#include <sys/epoll.h>
#include <sys/resource.h>
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
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client.h"

namespace {

using namespace bench;

struct Options : Target {
  bool streams = true;
  std::string range = "0";
  std::string key = kKey;
  int readers = 1;
  double rate = 100;
  double seconds = 5;
  std::size_t doc_bytes = 1024;
  int pid = 0;
};

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// ── The server's use of the machine ──

double cpu_seconds(int pid) {
  if (pid == 0) return 0;
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  if (file == nullptr) fail("there is no process with that --pid");
  unsigned long user = 0, system = 0;
  const int read = std::fscanf(
      file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  std::fclose(file);
  if (read != 2) fail("/proc is not as expected");
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double resident_kb(int pid) {
  if (pid == 0) return 0;
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/statm").c_str(), "r");
  long pages = 0, resident = 0;
  if (file == nullptr || std::fscanf(file, "%ld %ld", &pages, &resident) != 2) fail("no statm");
  std::fclose(file);
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024.0;
}

// ── Writing ──

/// When each document was acknowledged, in nanoseconds of the steady clock; 0: not yet.
using Times = std::vector<std::atomic<std::int64_t>>;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now().time_since_epoch())
      .count();
}

class Writer {
 public:
  explicit Writer(const Options& options)
      : options_(options), signer_(options.key), fd_(connect_to(options)), buffer_(64 * 1024) {}
  ~Writer() { ::close(fd_); }

  /// Its id is one of a few hundred, so that the container stays small; "seq" tells it from others.
  void write(std::uint64_t sequence) {
    std::string body = "{\"id\":\"push" + std::to_string(sequence % 500) +
                       "\",\"pk\":\"push\",\"seq\":" + std::to_string(sequence) + ",\"pad\":\"";
    if (body.size() + 2 < options_.doc_bytes)
      body.append(options_.doc_bytes - body.size() - 2, 'x');
    body += "\"}";
    upsert(fd_, options_, signer_, "push", body, buffer_);
  }

 private:
  const Options& options_;
  const Signer signer_;
  const int fd_;
  std::vector<char> buffer_;
};

// ── Reading ──

struct Arrival {
  std::uint64_t sequence;
  std::int64_t at;
};

class Readers {
 public:
  Readers(const Options& options, std::string etag)
      : options_(options), signer_(options.key), epoll_(::epoll_create1(0)) {
    readers_.resize(static_cast<std::size_t>(options.readers));
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      readers_[i].fd = connect_to(options);
      readers_[i].etag = etag;
      ask(readers_[i]);
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = i;
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, readers_[i].fd, &event);
    }
  }
  ~Readers() {
    for (const auto& reader : readers_) ::close(reader.fd);
    ::close(epoll_);
  }

  /// Takes what arrives until `enough` documents have, or `stop` says so.
  template <typename Stop>
  void run(Stop stop) {
    std::vector<epoll_event> events(256);
    while (!stop(arrivals_)) {
      const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 20);
      for (int i = 0; i < count; ++i) take(readers_[events[static_cast<std::size_t>(i)].data.u64]);
    }
  }
  std::uint64_t arrivals() const { return arrivals_; }
  bool in_order() const { return in_order_; }
  const std::vector<Arrival>& log() const { return log_; }

 private:
  struct Reader {
    int fd = -1;
    std::string etag;
    std::string text;
    std::uint64_t last = 0;
    bool has_any = false;
  };

  void ask(Reader& reader) {
    const std::string path = "/" + options_.container_link() + "/docs";
    std::string request = head(options_, signer_, "GET", path,
                               signer_.authorization("get", "docs", options_.container_link()));
    request += "a-im: Incremental feed\r\nx-ms-documentdb-partitionkeyrangeid: " + options_.range;
    request += "\r\nif-none-match: " + reader.etag + "\r\n";
    if (options_.streams) {
      const std::string_view plain = "accept: application/json";
      request.replace(request.find(plain), plain.size(), "accept: application/x-ndjson");
    } else {
      request += "prefer: wait=60\r\n";
    }
    send_all(reader.fd, request + "\r\n");
  }

  void take(Reader& reader) {
    char bytes[64 * 1024];
    const auto size = ::recv(reader.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) fail("the server closed the connection of a reader");
    const auto at = now_ns();
    reader.text.append(bytes, static_cast<std::size_t>(size));
    if (options_.streams) {
      take_lines(reader, at);
    } else {
      take_answers(reader, at);
    }
  }

  void take_lines(Reader& reader, std::int64_t at) {
    const auto end = reader.text.rfind('\n');
    if (end == std::string::npos) return;
    find_documents(reader, std::string_view(reader.text).substr(0, end), at);
    reader.text.erase(0, end + 1);
  }

  void take_answers(Reader& reader, std::int64_t at) {
    Head answered;
    while (parse_head(reader.text, answered) &&
           reader.text.size() >= answered.size + answered.body) {
      if (answered.status != 200 && answered.status != 304) {
        fail("a reader was answered " + std::to_string(answered.status));
      }
      reader.etag = answered.etag;
      find_documents(reader, std::string_view(reader.text).substr(answered.size, answered.body),
                     at);
      reader.text.erase(0, answered.size + answered.body);
      ask(reader);
    }
  }

  void find_documents(Reader& reader, std::string_view text, std::int64_t at) {
    constexpr std::string_view kMark = "\"seq\":";
    for (auto found = text.find(kMark); found != std::string_view::npos;
         found = text.find(kMark, found)) {
      found += kMark.size();
      const auto sequence = std::strtoull(text.data() + found, nullptr, 10);
      if (reader.has_any && sequence <= reader.last) in_order_ = false;
      reader.last = sequence;
      reader.has_any = true;
      ++arrivals_;
      log_.push_back({sequence, at});
    }
  }

  const Options& options_;
  const Signer signer_;
  const int epoll_;
  std::vector<Reader> readers_;
  std::vector<Arrival> log_;
  std::uint64_t arrivals_ = 0;
  bool in_order_ = true;
};

/// Where a reader that begins now begins.
std::string etag_now(const Options& options) {
  const Signer signer(options.key);
  const int fd = connect_to(options);
  const std::string path = "/" + options.container_link() + "/docs";
  std::string request = head(options, signer, "GET", path,
                             signer.authorization("get", "docs", options.container_link()));
  request += "a-im: Incremental feed\r\nif-none-match: *\r\nx-ms-documentdb-partitionkeyrangeid: " +
             options.range + "\r\n\r\n";
  send_all(fd, request);
  std::vector<char> buffer(64 * 1024);
  Head answered;
  receive_response(fd, buffer, answered);
  if (answered.status != 304)
    fail("If-None-Match: * was answered " + std::to_string(answered.status));
  std::string etag(answered.etag);
  ::close(fd);
  return etag;
}

int run(const Options& options) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);

  Writer writer(options);
  writer.write(0);
  const double memory_before = resident_kb(options.pid);
  Readers readers(options, etag_now(options));
  // Until the first document has arrived everywhere, not everybody is waiting yet.
  writer.write(1);
  const auto everybody = static_cast<std::uint64_t>(options.readers);
  readers.run([&](std::uint64_t arrivals) { return arrivals >= everybody; });
  const double memory_after = resident_kb(options.pid);

  const auto writes = static_cast<std::uint64_t>(options.rate * options.seconds);
  Times acknowledged(writes + 2);
  const double cpu_before = cpu_seconds(options.pid);
  const auto begun = SteadyClock::now();
  std::thread writing([&] {
    for (std::uint64_t n = 0; n < writes; ++n) {
      const std::chrono::duration<double> due(static_cast<double>(n) / options.rate);
      std::this_thread::sleep_until(begun + std::chrono::duration_cast<SteadyClock::duration>(due));
      writer.write(n + 2);
      acknowledged[n + 2] = now_ns();
    }
  });
  const std::uint64_t expected = everybody * (writes + 1);
  const double time_max = options.seconds * 2 + 10;
  readers.run([&](std::uint64_t arrivals) {
    return arrivals >= expected || seconds_since(begun) > time_max;
  });
  const double took = seconds_since(begun);
  writing.join();
  const double cpu = cpu_seconds(options.pid) - cpu_before;

  std::vector<double> delays;
  for (const auto& arrival : readers.log()) {
    if (arrival.sequence < 2) continue;
    delays.push_back(static_cast<double>(arrival.at - acknowledged[arrival.sequence]) / 1e6);
  }
  std::ranges::sort(delays);
  const std::uint64_t delivered = readers.arrivals() - everybody;
  const bool complete = readers.arrivals() == expected && readers.in_order();
  std::printf(
      "{\"mode\":\"%s\",\"readers\":%d,\"writes\":%llu,\"delivered\":%llu,\"complete\":%s,"
      "\"seconds\":%.3f,\"p50_ms\":%.3f,\"p90_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,"
      "\"cpu_us_per_delivery\":%.2f,\"kb_per_reader\":%.1f}\n",
      options.streams ? "stream" : "poll", options.readers, static_cast<unsigned long long>(writes),
      static_cast<unsigned long long>(delivered), complete ? "true" : "false", took,
      quantile(delays, 0.5), quantile(delays, 0.9), quantile(delays, 0.99),
      delays.empty() ? 0 : delays.back(),
      delivered == 0 ? 0 : cpu * 1e6 / static_cast<double>(delivered),
      (memory_after - memory_before) / options.readers);
  return complete ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (argc < 2) fail("usage: orrery_push stream|poll --port P --readers N --rate R --seconds S");
  const std::string mode = argv[1];
  if (mode != "stream" && mode != "poll") fail("the mode is stream or poll, not " + mode);
  options.streams = mode == "stream";
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = argv[i + 1];
    if (options.take(name, value)) continue;
    if (name == "--range")
      options.range = value;
    else if (name == "--key")
      options.key = value;
    else if (name == "--readers")
      options.readers = std::atoi(value);
    else if (name == "--rate")
      options.rate = std::atof(value);
    else if (name == "--seconds")
      options.seconds = std::atof(value);
    else if (name == "--doc-bytes")
      options.doc_bytes = static_cast<std::size_t>(std::atoll(value));
    else if (name == "--pid")
      options.pid = std::atoi(value);
    else
      fail("there is no option " + name);
  }
  return run(options);
}
