// Config: everything that can be set about a server, with its defaults.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "protocol/auth/well_known_key.h"
#include "storage/store.h"

namespace orrery::server {

using storage::Durability;

struct Config {
  std::filesystem::path data_directory = "orrery-data";
  bool ephemeral = false;  ///< in a temporary directory that is removed at exit
  /// The data was put back from a copy in a way that cannot be seen: see storage/life.h.
  bool new_life = false;
  /// Acknowledged writes that a damaged store no longer has are given up, instead of refusing it.
  bool accepts_loss = false;

  std::string listen_address = "127.0.0.1";
  std::uint16_t listen_port = 8081;
  /// Another port that is answered in the same way; 0: none. The vendor's emulator has its explorer
  /// there.
  std::uint16_t explorer_port = 0;
  /// A port for /alive, /ready and /status, in plain http; 0: none.
  std::uint16_t health_port = 0;
  /// Describes the account to those who do not sign, too, while the well-known key is in force:
  /// test frameworks take that for a sign of life.
  bool shows_account_to_all = false;
  std::string advertised_endpoint;  ///< empty: wherever a request was sent to
  unsigned threads = 0;             ///< 0: as many as there are cores
  std::size_t connections_max = 10'000;
  std::size_t request_memory_bytes = 0;  ///< of requests and answers under way; 0: as fits
  std::chrono::milliseconds request_time_max{30'000};
  /// A page of a feed or query ends after this time, and one document may take as much of a
  /// processor.
  std::chrono::milliseconds page_time_max{1000};
  std::size_t feed_readers_max = 10'000;  ///< who wait for changes, or have them streamed
  std::chrono::milliseconds feed_heartbeat{15'000};  ///< a silent stream gives a sign of life

  /// Queries over several ranges that are more than a filter are refused with their plan, as the
  /// service does it, instead of being served. A request can say otherwise.
  bool refuses_cross_partition = true;

  /// Containers that may share a database's throughput; 0: any number.
  std::size_t shared_throughput_containers_max = 0;

  std::vector<std::string> keys;  ///< read-write, base64; without any: the well-known key
  std::vector<std::string> read_only_keys;
  std::filesystem::path key_file;  ///< adds to both; read again by Server::reload()
  bool allow_well_known_key = false;
  bool check_dates = true;

  std::filesystem::path backup_directory;     ///< empty: none can be taken
  std::uint64_t backup_bytes_per_second = 0;  ///< that a back-up may write; 0: any number

  std::filesystem::path tls_certificate;  ///< empty: a self-signed one is made
  std::filesystem::path tls_key;  ///< empty: the certificate's file is PKCS#12, with the key in it
  std::string tls_password;       ///< of that file
  bool legacy_tls = false;

  Durability durability = Durability::Strict;
  std::size_t cache_bytes = 64 << 20;
  std::size_t vector_index_bytes_max = 512 << 20;   ///< of all vector indexes together
  std::uint64_t partition_bytes_max = 50ull << 30;  ///< a range that holds more is split
  std::uint64_t history_bytes_max = 1ull << 30;     ///< of a range; beyond, the oldest goes
  diagnostics::Level level = diagnostics::Level::Info;

  /// Whether only this machine can reach the server.
  bool listens_on_loopback() const;
};

}  // namespace orrery::server
