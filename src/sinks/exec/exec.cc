#include "sinks/exec/exec.h"

#include <utility>

#include <fmt/format.h>

#include "json/lines.h"
#include "sinks/batch_text.h"
#include "sinks/reply.h"

namespace orrery::sinks {
namespace {

using processor::ObserverContext;

/// EX_TEMPFAIL of sysexits.h.
constexpr int kTryLater = 75;
/// Of the shell: there is no such command, or it can't be run.
constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;
/// A longer line is no reply.
constexpr std::size_t kReplyBytesMax = 1 << 20;

std::vector<std::string> variables_of(const ObserverContext& context, std::size_t count) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : facts_of(context, count)) {
    std::string variable = "ORRERY_";
    for (const char letter : name) variable += static_cast<char>(letter - 'a' + 'A');
    variables.push_back(variable + "=" + value);
  }
  return variables;
}

std::string timed_out(std::chrono::milliseconds time) {
  return fmt::format("the command has not ended within {} ms and was killed", time.count());
}

ChildProcess::Limits limits_for(const ObserverContext& context, const ExecOptions& options) {
  return {options.batch_time, context.stop(), options.grace};
}

Delivery judge(const ChildProcess::Status& status) {
  if (status.code == 0) return Delivery::done();
  if (status.code == kTryLater) return Delivery::later("the command asks for another time (75)");
  // A missing command is no fault of any document.
  if (status.code == kNotFound || status.code == kNotExecutable) {
    return Delivery::later(fmt::format("the command can't be run ({})", status.words));
  }
  return Delivery::failed(fmt::format("the command ended with {}", status.words));
}

}  // namespace

// ── one process per batch ────────────────────────────────────────────────────────────────────────

Delivery ExecSink::deliver(ObserverContext& context, Changes changes) {
  auto child =
      ChildProcess::start(options_.command, variables_of(context, changes.size()), options_.groups);
  if (!child) return Delivery::later(child.error().message());
  LastLine output(options_.print);
  const auto ending =
      (*child)->exchange(json::lines(changes), /*close_input=*/true, limits_for(context, options_),
                         [&output](std::string_view chunk) {
                           output.add(chunk);
                           return false;
                         });
  if (ending == ChildProcess::Ending::TimedOut) {
    output.pass_on_rest();
    return Delivery::failed(timed_out(options_.batch_time));
  }
  Delivery by_status = judge((*child)->status());
  auto reply = parse_reply(output.text(), changes.size());
  if (!reply) output.pass_on_rest();
  // A command that replies "done" and fails has failed; the reply of one that was killed does not
  // count.
  if (!reply || reply->is_done() || !(*child)->status().code) return by_status;
  return *std::move(reply);
}

// ── one process that stays ───────────────────────────────────────────────────────────────────────

std::unique_ptr<ChildProcess> ExecStreamSink::take_idle() {
  const std::scoped_lock lock(mutex_);
  if (idle_.empty()) return nullptr;
  auto child = std::move(idle_.back());
  idle_.pop_back();
  return child;
}

void ExecStreamSink::put_back(std::unique_ptr<ChildProcess> child) {
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(child));
}

Delivery ExecStreamSink::deliver(ObserverContext& context, Changes changes) {
  auto child = take_idle();
  if (!child) {
    auto started = ChildProcess::start(options_.command, {"ORRERY_LEASE=" + context.lease_token()},
                                       options_.groups);
    if (!started) return Delivery::later(started.error().message());
    child = *std::move(started);
  }
  std::string answer;
  const auto ending = child->exchange(
      envelope(context, changes) + "\n", /*close_input=*/false, limits_for(context, options_),
      [&answer](std::string_view chunk) {
        answer += chunk;
        return answer.find('\n') != std::string::npos || answer.size() > kReplyBytesMax;
      });
  switch (ending) {
    case ChildProcess::Ending::TimedOut:
      return Delivery::failed(timed_out(options_.batch_time));
    case ChildProcess::Ending::Stopped:
      return Delivery::failed("the command was stopped");
    case ChildProcess::Ending::Exited:
      return judge(child->status()).kind == Delivery::Kind::Later
                 ? judge(child->status())
                 : Delivery::failed(fmt::format("the command ended ({}) without an answer",
                                                child->status().words));
    case ChildProcess::Ending::Satisfied:
      break;
  }
  const std::size_t end = answer.find('\n');
  if (end == std::string::npos || end + 1 < answer.size()) {
    // Later answers could not be told apart by batch: the command is killed.
    return Delivery::failed("the command answered with more than one line");
  }
  auto reply = parse_reply(answer, changes.size());
  put_back(std::move(child));
  if (reply) return *std::move(reply);
  return Delivery::failed(
      fmt::format("the command's answer is no reply: {}",
                  std::string_view(answer).substr(0, std::min<std::size_t>(end, 200))));
}

void ExecStreamSink::close() {
  while (const auto child = take_idle()) child->finish(options_.grace);
}

// ── LastLine ─────────────────────────────────────────────────────────────────────────────────────

void LastLine::add(std::string_view chunk) {
  held_ += chunk;
  std::string_view held = held_;
  // The break at the very end belongs to the line before it.
  if (held.ends_with('\n')) held.remove_suffix(1);
  std::size_t passed = held.rfind('\n') + 1;  // 0 when there is none.
  if (held_.size() - passed > kReplyBytesMax) passed = held_.size();
  if (passed == 0) return;
  pass_on_(std::string_view(held_).substr(0, passed));
  held_.erase(0, passed);
}

void LastLine::pass_on_rest() {
  if (!held_.empty()) pass_on_(held_);
  held_.clear();
}

}  // namespace orrery::sinks
