#include "cli/terminal/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

namespace orrery::cli {
namespace {

constexpr std::chrono::milliseconds kShowInterval{200};
constexpr std::chrono::seconds kRateInterval{2};
constexpr std::size_t kWidthAssumed = 80;

std::size_t width_of(std::FILE* out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kWidthAssumed;
}

/// 3 s, 12 min, 5 h: people want to know whether to wait or to go home.
std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 90 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.0f} h", seconds / 3600);
}

}  // namespace

ProgressLine::ProgressLine(std::FILE* out, std::string what)
    : out_(out),
      what_(std::move(what)),
      on_(::isatty(::fileno(out)) == 1),
      rated_at_(Clock::now()) {}

ProgressLine::~ProgressLine() {
  if (shown_) std::fputc('\n', out_);
}

void ProgressLine::show(const Progress& progress, Clock::time_point now) {
  if (!on_ || (shown_ && now - last_shown_ < kShowInterval)) return;
  const std::chrono::duration<double> elapsed = now - rated_at_;
  if (elapsed >= kRateInterval || rate_ == 0) {
    const auto documents = static_cast<double>(progress.documents - rated_documents_);
    rate_ = elapsed.count() > 0 ? documents / elapsed.count() : 0;
    if (elapsed >= kRateInterval) {
      rated_at_ = now;
      rated_documents_ = progress.documents;
    }
  }
  // Back to the first column, and whatever is left of a longer line is erased.
  fmt::print(out_, "\r{}\x1b[K", text(what_, progress, rate_, width_of(out_)));
  std::fflush(out_);
  shown_ = true;
  last_shown_ = now;
}

std::string ProgressLine::text(const std::string& what, const Progress& progress,
                               double documents_per_second, std::size_t width) {
  std::string line =
      fmt::format("{}: {} documents, {:.0f}/s", what, progress.documents, documents_per_second);
  if (progress.documents_left) {
    line += *progress.documents_left == 0 ? ", up to date"
                                          : fmt::format(", {} behind", *progress.documents_left);
    if (*progress.documents_left > 0 && documents_per_second >= 1) {
      line += fmt::format(", {} left", duration_text(static_cast<double>(*progress.documents_left) /
                                                     documents_per_second));
    }
  }
  if (!progress.note.empty()) line += ", " + progress.note;
  // A line that wraps can't be written over.
  if (line.size() >= width) line.resize(width > 0 ? width - 1 : 0);
  return line;
}

}  // namespace orrery::cli
