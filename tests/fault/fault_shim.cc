// A disk that can be told to fail, for tests: loaded into the server with LD_PRELOAD, it stands
// between the program and libc for files below one directory and answers as a full or a broken
// disk would.
//
//   ORRERY_FAULT_DIR      the directory (absolute, without symbolic links)
//   ORRERY_FAULT_CONTROL  a file of sizeof(Control) bytes or more, mapped shared by this library
//                         and by the test: the test sets the mode, the library counts what it did
//
// While the mode is None a call costs one load more than without the library. In any other mode the
// path of the file is looked up in /proc at every call, so no table of descriptors can go stale.
//
// It also remembers, per inode, how long a file was when it was last synchronised. After a SIGKILL
// a test can cut every file to that length and so have the disk that a power failure would leave.
// A synchronisation that failed may have lost what it was to write, and Linux reports that once:
// from then on the file keeps the length it had, whatever later calls say, until it is cut back to
// that length or made anew.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum Mode : std::uint32_t { kNone = 0, kNoSpace = 1, kWriteError = 2, kSyncError = 3 };

// Layout of the control file, little-endian; tests/fault/fault_disk.py reads and writes it.
//   offset  0  size 4  mode, set by the test
//   offset  4  size 4  calls that were made to fail
//   offset  8  size 4  writes that were cut short before the failure
//   offset 12  size 4  unused
//   offset 16          kInodesMax entries of 16 bytes: inode, synchronised length + 1 (0: free);
//                      the highest bit of the length is set once a synchronisation has failed
constexpr std::size_t kInodesMax = 1 << 16;
constexpr std::uint64_t kSyncHasFailed = std::uint64_t{1} << 63;
struct Inode {
  std::atomic<std::uint64_t> number;
  std::atomic<std::uint64_t> length_plus_one;
};
struct Control {
  std::atomic<std::uint32_t> mode;
  std::atomic<std::uint32_t> failures;
  std::atomic<std::uint32_t> torn_writes;
  std::uint32_t unused;
  Inode inodes[kInodesMax];
};
static_assert(sizeof(Control) == 16 + 16 * kInodesMax);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

Control* control = nullptr;
char directory[PATH_MAX];
std::size_t directory_size = 0;

// The next definition of a function after this library's: libc's.
template <typename Function>
Function* next(Function*& cached, const char* name) {
  if (cached == nullptr) cached = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return cached;
}

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "fault_shim: %s: %s\n", why, std::strerror(errno));
  _exit(97);
}

__attribute__((constructor)) void attach() {
  const char* dir = std::getenv("ORRERY_FAULT_DIR");
  const char* path = std::getenv("ORRERY_FAULT_CONTROL");
  if (dir == nullptr || path == nullptr) return;
  directory_size = std::strlen(dir);
  if (directory_size >= sizeof(directory)) give_up("ORRERY_FAULT_DIR is too long");
  std::memcpy(directory, dir, directory_size + 1);
  static decltype(::open)* libc_open = nullptr;
  const int fd = next(libc_open, "open")(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) give_up("cannot open ORRERY_FAULT_CONTROL");
  void* mapped = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) give_up("cannot map ORRERY_FAULT_CONTROL");
  ::close(fd);
  control = static_cast<Control*>(mapped);
}

std::uint32_t mode() {
  return control == nullptr ? kNone : control->mode.load(std::memory_order_acquire);
}

bool below_directory(const char* path) {
  return std::strncmp(path, directory, directory_size) == 0 &&
         (path[directory_size] == '/' || path[directory_size] == '\0');
}

bool concerns(int fd) {
  char link[64];
  char path[PATH_MAX];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link, path, sizeof(path) - 1);
  if (size <= 0) return false;
  path[size] = '\0';
  return below_directory(path);
}

// The error number for a call that writes or allocates, or 0.
int write_fault(int fd) {
  const std::uint32_t now = mode();
  if (now != kNoSpace && now != kWriteError) return 0;
  const int saved = errno;
  const bool ours = concerns(fd);
  errno = saved;
  if (!ours) return 0;
  control->failures.fetch_add(1);
  return now == kNoSpace ? ENOSPC : EIO;
}

// Every other write that is to fail first puts half of its bytes on the disk and says so, as a disk
// that fills up does; the caller comes back with the rest and is refused.
bool tears_this_write() {
  static std::atomic<std::uint32_t> calls{0};
  if ((calls.fetch_add(1) & 1) != 0) return false;
  control->torn_writes.fetch_add(1);
  return true;
}

Inode* find_inode(std::uint64_t number) {
  for (std::size_t i = 0; i < kInodesMax; ++i) {
    Inode& entry = control->inodes[(number * 0x9E3779B97F4A7C15ull + i) % kInodesMax];
    std::uint64_t seen = entry.number.load();
    if (seen == 0 && entry.number.compare_exchange_strong(seen, number)) return &entry;
    if (seen == number) return &entry;
  }
  give_up("too many files to remember");
}

Inode* entry_of(int fd) {
  struct stat status;
  if (!concerns(fd) || ::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  return find_inode(status.st_ino);
}

void remember_created(int fd) {
  if (Inode* entry = entry_of(fd)) entry->length_plus_one.store(1);
}

void remember_synced(int fd, std::uint64_t length) {
  Inode* entry = entry_of(fd);
  if (entry == nullptr) return;
  std::uint64_t seen = entry->length_plus_one.load();
  while ((seen & kSyncHasFailed) == 0 && seen < length + 1 &&
         !entry->length_plus_one.compare_exchange_weak(seen, length + 1)) {
  }
}

void remember_cut(int fd, std::uint64_t length) {
  Inode* entry = entry_of(fd);
  if (entry == nullptr) return;
  const std::uint64_t seen = entry->length_plus_one.load() & ~kSyncHasFailed;
  if (length < seen) entry->length_plus_one.store(length + 1);
}

bool sync_fault(int fd) {
  if (mode() != kSyncError || !concerns(fd)) return false;
  control->failures.fetch_add(1);
  if (Inode* entry = entry_of(fd)) {
    std::uint64_t never = 0;
    entry->length_plus_one.compare_exchange_strong(never, 1);
    entry->length_plus_one.fetch_or(kSyncHasFailed);
  }
  return true;
}

std::uint64_t length_of(int fd) {
  struct stat status;
  return ::fstat(fd, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

int open_and_remember(int (*libc_open)(const char*, int, ...), const char* path, int flags,
                      mode_t permissions) {
  if (control == nullptr || (flags & O_CREAT) == 0 || !below_directory(path)) {
    return libc_open(path, flags, permissions);
  }
  const bool existed = ::access(path, F_OK) == 0;
  if (!existed && mode() == kNoSpace) {
    control->failures.fetch_add(1);
    errno = ENOSPC;
    return -1;
  }
  const int fd = libc_open(path, flags, permissions);
  // A new file may have the number of a removed one: nothing of it is on the disk yet.
  if (fd >= 0 && (!existed || (flags & O_TRUNC) != 0)) remember_created(fd);
  return fd;
}

// The tail of open's arguments is there only when a file may be created.
mode_t permissions_from(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE
             ? static_cast<mode_t>(va_arg(arguments, int))
             : 0;
}

ssize_t fail(int error) {
  errno = error;
  return -1;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t permissions = permissions_from(flags, arguments);
  va_end(arguments);
  static int (*libc_open)(const char*, int, ...) = nullptr;
  if (libc_open == nullptr) {
    libc_open = reinterpret_cast<decltype(libc_open)>(dlsym(RTLD_NEXT, "open"));
  }
  return open_and_remember(libc_open, path, flags, permissions);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t permissions = permissions_from(flags, arguments);
  va_end(arguments);
  static int (*libc_open)(const char*, int, ...) = nullptr;
  if (libc_open == nullptr) {
    libc_open = reinterpret_cast<decltype(libc_open)>(dlsym(RTLD_NEXT, "open64"));
  }
  return open_and_remember(libc_open, path, flags, permissions);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  static decltype(::write)* libc_write = nullptr;
  next(libc_write, "write");
  if (const int error = write_fault(fd)) {
    if (size < 2 || !tears_this_write()) return fail(error);
    return libc_write(fd, bytes, size / 2);
  }
  return libc_write(fd, bytes, size);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  static decltype(::pwrite)* libc_pwrite = nullptr;
  next(libc_pwrite, "pwrite");
  if (const int error = write_fault(fd)) {
    if (size < 2 || !tears_this_write()) return fail(error);
    return libc_pwrite(fd, bytes, size / 2, offset);
  }
  return libc_pwrite(fd, bytes, size, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return ::pwrite(fd, bytes, size, offset);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  static decltype(::writev)* libc_writev = nullptr;
  if (const int error = write_fault(fd)) return fail(error);
  return next(libc_writev, "writev")(fd, parts, count);
}

ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  static decltype(::pwritev)* libc_pwritev = nullptr;
  if (const int error = write_fault(fd)) return fail(error);
  return next(libc_pwritev, "pwritev")(fd, parts, count, offset);
}

int fdatasync(int fd) {
  static decltype(::fdatasync)* libc_fdatasync = nullptr;
  if (sync_fault(fd)) return static_cast<int>(fail(EIO));
  const std::uint64_t length = control == nullptr ? 0 : length_of(fd);
  const int result = next(libc_fdatasync, "fdatasync")(fd);
  if (result == 0 && control != nullptr) remember_synced(fd, length);
  return result;
}

int fsync(int fd) {
  static decltype(::fsync)* libc_fsync = nullptr;
  if (sync_fault(fd)) return static_cast<int>(fail(EIO));
  const std::uint64_t length = control == nullptr ? 0 : length_of(fd);
  const int result = next(libc_fsync, "fsync")(fd);
  if (result == 0 && control != nullptr) remember_synced(fd, length);
  return result;
}

// Starts write-back without making anything durable: it may fail, but is never remembered. Without
// flags it does nothing and cannot fail; RocksDB asks so whether the file system knows the call.
int sync_file_range(int fd, off64_t offset, off64_t size, unsigned int flags) {
  static decltype(::sync_file_range)* libc_sync_file_range = nullptr;
  if (flags != 0 && sync_fault(fd)) return static_cast<int>(fail(EIO));
  return next(libc_sync_file_range, "sync_file_range")(fd, offset, size, flags);
}

int ftruncate(int fd, off_t size) {
  static decltype(::ftruncate)* libc_ftruncate = nullptr;
  if (const int error = write_fault(fd)) return static_cast<int>(fail(error));
  const int result = next(libc_ftruncate, "ftruncate")(fd, size);
  if (result == 0 && control != nullptr) remember_cut(fd, static_cast<std::uint64_t>(size));
  return result;
}

int ftruncate64(int fd, off64_t size) { return ::ftruncate(fd, size); }

int fallocate(int fd, int flags, off_t offset, off_t size) {
  static decltype(::fallocate)* libc_fallocate = nullptr;
  if (const int error = write_fault(fd)) return static_cast<int>(fail(error));
  return next(libc_fallocate, "fallocate")(fd, flags, offset, size);
}

int fallocate64(int fd, int flags, off64_t offset, off64_t size) {
  return ::fallocate(fd, flags, offset, size);
}

// Answers with the error number instead of setting errno.
int posix_fallocate(int fd, off_t offset, off_t size) {
  static decltype(::posix_fallocate)* libc_posix_fallocate = nullptr;
  if (const int error = write_fault(fd)) return error;
  return next(libc_posix_fallocate, "posix_fallocate")(fd, offset, size);
}

}  // extern "C"
