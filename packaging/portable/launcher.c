/* The file `orrery` at the top of the portable tree: it replaces itself by lib/orrery, run by the
 * dynamic loader in lib/.
 *
 * An ELF program names its loader by an absolute path, so that lib/orrery by itself would take the
 * machine's, with another C library or none at all. A shell script in this place would need a
 * shell. This program needs nothing but the kernel: no C library, no /proc, no /etc. It makes no
 * child; process number, signals and exit status are the program's own.
 *
 * The loader finds the libraries by the program's RPATH, $ORIGIN. --library-path would split the
 * directory at a colon.
 */
#ifndef __x86_64__
#error "only for x86-64"
#endif

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stddef.h>
#include <sys/syscall.h>

enum { LINKS_MAX = 40, PATH_SIZE = 2 * PATH_MAX };

static const char loader_file[] = "/lib/ld-linux-x86-64.so.2";
static const char program_file[] = "/lib/orrery";

static long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
}

static size_t length_of(const char* text) {
  size_t length = 0;
  while (text[length] != '\0') ++length;
  return length;
}

static void say(const char* text) { call(SYS_write, 2, (long)text, (long)length_of(text)); }

static _Noreturn void fail(const char* what, long error) {
  char digits[8];
  char* at = digits + sizeof digits;
  *--at = '\0';
  for (long rest = error; at == digits + sizeof digits - 1 || (rest != 0 && at > digits);
       rest /= 10) {
    *--at = (char)('0' + rest % 10);
  }
  say("orrery: ");
  say(what);
  say(" cannot be started (error ");
  say(at);
  say("). The directory lib has to stay beside the file orrery.\n");
  call(SYS_exit_group, error == ENOENT ? 127 : 126, 0, 0);
  __builtin_unreachable();
}

/* Puts `text` behind the first `length` bytes of `path`. */
static void append(char* path, size_t length, const char* text) {
  const size_t more = length_of(text);
  if (length + more >= PATH_SIZE) fail("a path that is too long", ENAMETOOLONG);
  for (size_t i = 0; i <= more; ++i) path[length + i] = text[i];
}

/* The length of what stands before the last slash. */
static size_t directory_length(const char* path) {
  size_t length = length_of(path);
  while (length > 0 && path[length - 1] != '/') --length;
  return length > 0 ? length - 1 : 0;
}

/* What the link says; 0 where there is no link. */
static size_t read_link(const char* path, char* target) {
  const long length = call(SYS_readlink, (long)path, (long)target, PATH_MAX - 1);
  if (length <= 0) return 0;
  target[length] = '\0';
  return (size_t)length;
}

/* Where /proc is not mounted: the path that the kernel was given, and what links lead to from
 * there. */
static void follow(const char* given, char* path) {
  static char target[PATH_MAX];
  path[0] = '\0';
  if (given[0] != '/') {
    if (call(SYS_getcwd, (long)path, PATH_MAX, 0) <= 0) append(path, 0, ".");
    append(path, length_of(path), "/");
  }
  append(path, length_of(path), given);
  for (int i = 0; i < LINKS_MAX && read_link(path, target) != 0; ++i) {
    if (target[0] == '/') {
      append(path, 0, target);
    } else {
      const size_t length = directory_length(path);
      append(path, length, "/");
      append(path, length + 1, target);
    }
  }
}

__attribute__((used)) static _Noreturn void begin(long* stack) {
  const long count = stack[0];
  const char** const arguments = (const char**)(stack + 1);
  const char** const environment = arguments + count + 1;
  const char** end = environment;
  while (*end != NULL) ++end;
  const char* given = count > 0 ? arguments[0] : "orrery";
  for (const Elf64_auxv_t* entry = (const Elf64_auxv_t*)(end + 1); entry->a_type != AT_NULL;
       ++entry) {
    if (entry->a_type == AT_EXECFN) given = (const char*)entry->a_un.a_val;
  }

  static char loader[PATH_SIZE];
  static char program[PATH_SIZE];
  if (read_link("/proc/self/exe", program) == 0 || program[0] != '/') follow(given, program);
  const size_t length = directory_length(program);
  append(loader, 0, program);
  append(loader, length, loader_file);
  append(program, length, program_file);

  /* The machine's list of libraries is for programs that are linked with its C library. */
  const char* words[count + 6];
  long at = 0;
  words[at++] = loader;
  words[at++] = "--inhibit-cache";
  words[at++] = "--argv0";
  words[at++] = count > 0 ? arguments[0] : "orrery";
  words[at++] = program;
  for (long i = 1; i < count; ++i) words[at++] = arguments[i];
  words[at] = NULL;
  fail(loader, -call(SYS_execve, (long)loader, (long)words, (long)environment));
}

__attribute__((naked, noreturn)) void _start(void) {
  __asm__("mov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin");
}
