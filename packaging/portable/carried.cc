// What orrery_portable takes from its own tree, or looks for in more than one place, because the
// machine need not be a Debian: its letters, its name among the processes, and the certificates of
// authorities. The linker puts the functions
// __wrap_NAME in the place of NAME.
#include <cstdlib>
#include <cstring>
#include <string>

#include <curl/curl.h>
#include <locale.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

extern "C" {
locale_t __real_newlocale(int mask, const char* name, locale_t base);
locale_t __wrap_newlocale(int mask, const char* name, locale_t base);
CURL* __real_curl_easy_init();
CURL* __wrap_curl_easy_init();
void __real_curl_easy_reset(CURL* handle);
void __wrap_curl_easy_reset(CURL* handle);
}

namespace {

constexpr const char* kLocale = "C.UTF-8";
constexpr const char* kLocaleVariable = "LOCPATH";

/// Unicode's letters from lib/locale. Null when the program runs by itself, outside of a tree, and
/// then the machine's are taken.
locale_t carried_locale() {
  const auto* const program = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (program == nullptr) return nullptr;
  std::string directory(program);
  directory.resize(directory.rfind('/') + 1);
  directory += "locale";
  // Only for this one call: children, such as the handlers of `orrery process`, have the locales of
  // the machine.
  const char* const variable = std::getenv(kLocaleVariable);
  const bool was_set = variable != nullptr;
  const std::string old = was_set ? variable : "";
  ::setenv(kLocaleVariable, directory.c_str(), 1);
  const locale_t locale = __real_newlocale(LC_CTYPE_MASK, kLocale, nullptr);
  if (was_set) {
    ::setenv(kLocaleVariable, old.c_str(), 1);
  } else {
    ::unsetenv(kLocaleVariable);
  }
  return locale;
}

/// Before main(), while there is one thread: variables of the environment are changed.
struct Carried {
  locale_t locale = carried_locale();

  Carried() {
    // The loader is what was started, and the process would have its name.
    if (locale != nullptr) ::prctl(PR_SET_NAME, "orrery");
  }
};
const Carried carried;

/// The file of authorities that the machine has; null where libcurl looks in the right place
/// anyway.
const char* authorities() {
  static const char* const found = []() -> const char* {
    constexpr const char* kOfDebian = "/etc/ssl/certs/ca-certificates.crt";
    if (::access(kOfDebian, R_OK) == 0) return nullptr;
    for (const char* file : {
             "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL
             "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // the same, newer
             "/etc/ssl/ca-bundle.pem",                             // SUSE
             "/etc/ssl/cert.pem",                                  // Alpine
         }) {
      if (::access(file, R_OK) == 0) return file;
    }
    return nullptr;
  }();
  return found;
}

/// What the caller sets later takes its place.
void set_authorities(CURL* handle) {
  if (authorities() != nullptr) curl_easy_setopt(handle, CURLOPT_CAINFO, authorities());
}

}  // namespace

locale_t __wrap_newlocale(int mask, const char* name, locale_t base) {
  const bool is_ours = mask == LC_CTYPE_MASK && base == nullptr && std::strcmp(name, kLocale) == 0;
  if (is_ours && carried.locale != nullptr) return ::duplocale(carried.locale);
  return __real_newlocale(mask, name, base);
}

CURL* __wrap_curl_easy_init() {
  CURL* const handle = __real_curl_easy_init();
  if (handle != nullptr) set_authorities(handle);
  return handle;
}

void __wrap_curl_easy_reset(CURL* handle) {
  __real_curl_easy_reset(handle);
  set_authorities(handle);
}
