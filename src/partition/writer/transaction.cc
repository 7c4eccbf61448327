#include "partition/writer/transaction.h"

namespace orrery::partition {
namespace {

std::size_t bytes_of(const DocumentWrites& documents) {
  std::size_t bytes = 0;
  for (const Write& write : documents.writes) {
    bytes += sizeof(Write) + write.version.open_text.size();
  }
  return bytes;
}

std::size_t bytes_of(const ExpiryPurge& purge) {
  return purge.candidates.size() * sizeof(PurgeCandidate);
}

std::size_t bytes_of(const IndexChange& change) {
  std::size_t bytes = 0;
  for (const std::string& spec : change.add) bytes += sizeof(std::string) + spec.size();
  for (const std::string& spec : change.drop) bytes += sizeof(std::string) + spec.size();
  return bytes;
}

/// The others are of a fixed size, or nearly so.
template <typename Work>
std::size_t bytes_of(const Work&) {
  return 0;
}

}  // namespace

std::size_t Transaction::byte_size() const {
  return sizeof(Transaction) + std::visit([](const auto& each) { return bytes_of(each); }, work);
}

}  // namespace orrery::partition
