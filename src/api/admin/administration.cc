#include "api/admin/administration.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/reply.h"
#include "json/document_text.h"
#include "maintenance/backup_runner.h"
#include "maintenance/check_runner.h"

namespace orrery::api::administration {
namespace {

using maintenance::Backup;
using maintenance::BackupRunner;
using maintenance::CheckReport;
using maintenance::JobState;

// ── keys ─────────────────────────────────────────────────────────────────────────────────────────

/// The keys in force, without the keys.
Async<http::Response> show_keys(Services& services, Context& context) {
  std::string body = "{\"keys\":[";
  for (const AccountKey& key : services.keys->in_force()) {
    if (body.back() != '[') body.push_back(',');
    body += "{\"slot\":";
    json::append_quoted(body, key.slot);
    const UnixSeconds last_used = key.last_used->load(std::memory_order_relaxed);
    fmt::format_to(std::back_inserter(body), R"(,"access":"{}","lastUsed":{}}})",
                   key.access == Access::ReadWrite ? "read-write" : "read-only",
                   last_used == 0 ? "null" : std::to_string(last_used));
  }
  body += "]}";
  co_return reply(context, 200, std::move(body));
}

Async<http::Response> reload_keys(Services& services, Context& context) {
  ORRERY_CO_TRY(co_await run_blocking(services.blocking, [&] { return services.reload(); }));
  co_return co_await show_keys(services, context);
}

// ── outcomes ─────────────────────────────────────────────────────────────────────────────────────

void append(std::string& out, const Backup& backup) {
  fmt::format_to(std::back_inserter(out), R"({{"number":{},"whole":{})", backup.number,
                 backup.is_whole);
  if (backup.is_whole) {
    fmt::format_to(std::back_inserter(out), R"(,"taken":{},"bytes":{},"newBytes":{},"version":)",
                   backup.taken, backup.bytes, backup.new_bytes);
    json::append_quoted(out, backup.version);
    out += ",\"life\":";
    json::append_quoted(out, backup.life);
  }
  out.push_back('}');
}

void append(std::string& out, const CheckReport& report) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"partitions":{},"documents":{},"findingCount":{},"findings":[)",
                 report.partitions, report.documents, report.finding_count);
  for (const maintenance::Finding& finding : report.findings) {
    if (out.back() != '[') out.push_back(',');
    out += "{\"where\":";
    json::append_quoted(out, finding.where);
    out += ",\"what\":";
    json::append_quoted(out, finding.what);
    out.push_back('}');
  }
  out += "]}";
}

// ── long work ────────────────────────────────────────────────────────────────────────────────────

std::string_view name_of(JobState state) {
  switch (state) {
    case JobState::Idle:
      return "idle";
    case JobState::Running:
      return "running";
    case JobState::Done:
      return "done";
    case JobState::Failed:
      return "failed";
  }
  return "";
}

/// Members that tell of the run that was asked for last. Its outcome comes under this name.
template <typename Outcome>
void append_status(std::string& out, const typename maintenance::Job<Outcome>::Status& status,
                   std::string_view outcome_name) {
  fmt::format_to(std::back_inserter(out), R"("state":"{}")", name_of(status.state));
  if (status.state == JobState::Idle) return;
  fmt::format_to(std::back_inserter(out), R"(,"run":{},"began":{})", status.run, status.began);
  if (status.outcome) {
    fmt::format_to(std::back_inserter(out), R"(,"{}":)", outcome_name);
    append(out, *status.outcome);
  }
  if (status.state == JobState::Failed) {
    out += ",\"failure\":";
    json::append_quoted(out, status.failure);
  }
}

// ── back-ups ─────────────────────────────────────────────────────────────────────────────────────

std::string show_status(const BackupRunner& runner) {
  std::string out = "\"directory\":";
  json::append_quoted(out, runner.directory().string());
  out.push_back(',');
  append_status<Backup>(out, runner.status(), "made");
  return out;
}

/// A client may stay away from this while a back-up is taken: it goes on by itself.
Async<http::Response> take_backup(Services& services, Context& context) {
  ORRERY_CO_TRY(services.backups->start());
  co_return reply(context, 202, "{" + show_status(*services.backups) + "}");
}

Async<http::Response> show_backups(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto backups, co_await run_blocking(services.blocking, [&services] {
                  return services.backups->list();
                }));
  std::string body = "{" + show_status(*services.backups) + ",\"backups\":[";
  for (const Backup& backup : backups) {
    if (body.back() != '[') body.push_back(',');
    append(body, backup);
  }
  body += "]}";
  co_return reply(context, 200, std::move(body));
}

// ── checks ───────────────────────────────────────────────────────────────────────────────────────

http::Response show_check(Services& services, Context& context, int status) {
  std::string body = "{";
  append_status<CheckReport>(body, services.checks->status(), "report");
  body.push_back('}');
  return reply(context, status, std::move(body));
}

Async<http::Response> show_last_check(Services& services, Context& context) {
  co_return show_check(services, context, 200);
}

Async<http::Response> begin_check(Services& services, Context& context) {
  ORRERY_CO_TRY(services.checks->start());
  co_return show_check(services, context, 202);
}

// ── routes ───────────────────────────────────────────────────────────────────────────────────────

struct Route {
  std::string_view path;
  std::string_view method;
  Async<http::Response> (*handle)(Services& services, Context& context);
};

constexpr Route kRoutes[] = {
    {"_orrery/keys", "GET", show_keys},        {"_orrery/keys/reload", "POST", reload_keys},
    {"_orrery/backups", "GET", show_backups},  {"_orrery/backups", "POST", take_backup},
    {"_orrery/check", "GET", show_last_check}, {"_orrery/check", "POST", begin_check},
};

}  // namespace

Async<http::Response> respond(Services& services, Context& context) {
  const std::string_view path = context.path.text;
  ORRERY_CO_TRY(authorize(context.principal, Action::Write, context.target));
  std::string methods;
  for (const Route& route : kRoutes) {
    if (route.path != path) continue;
    if (route.method == context.request.method) co_return co_await route.handle(services, context);
    if (!methods.empty()) methods += " and ";
    methods += route.method;
  }
  if (methods.empty()) {
    co_return Error(ErrorCode::NotFound, fmt::format("Resource Not Found. There is no /{}.", path));
  }
  co_return Error(ErrorCode::MethodNotAllowed, fmt::format("/{} takes {} only.", path, methods));
}

}  // namespace orrery::api::administration
