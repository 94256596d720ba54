// A library for LD_PRELOAD that harms a process at one of its file-system calls, chosen by number.
//
//   FATHOM_FAULT="kill 17"     SIGKILL before the 17th call that changes a file or a folder
//   FATHOM_FAULT="28 17"       that call fails with errno 28 (ENOSPC)
//   FATHOM_FAULT="28 17+"      it and all that follow
//   FATHOM_FAULT="4 17"        EINTR, which every caller must try again
//   FATHOM_FAULT="clock 17"    from that call on the wall clock steps back an hour with every look
//   FATHOM_FAULT_COUNT=FILE    how many such calls there were is written to FILE at the end
//
// Calls on paths below FATHOM_FAULT_UNDER are counted, others pass.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Plan {
  bool kills = false;
  bool clock = false;
  bool all_later = false;
  int error = 0;
  long at = 0;  // 0: never
  const char* under = nullptr;
};

const Plan& plan() {
  static const Plan made = [] {
    Plan plan;
    plan.under = std::getenv("FATHOM_FAULT_UNDER");
    const char* text = std::getenv("FATHOM_FAULT");
    if (text == nullptr) return plan;
    plan.kills = std::strncmp(text, "kill ", 5) == 0;
    plan.clock = std::strncmp(text, "clock ", 6) == 0;
    if (!plan.kills && !plan.clock) plan.error = std::atoi(text);
    const char* number = std::strchr(text, ' ');
    if (number != nullptr) plan.at = std::atol(number);
    plan.all_later = std::strchr(text, '+') != nullptr;
    return plan;
  }();
  return made;
}

std::atomic<long> calls{0};
std::atomic<long> looks{0};  // at a clock that steps back

struct CountWriter {
  ~CountWriter() {
    const char* path = std::getenv("FATHOM_FAULT_COUNT");
    if (path == nullptr) return;
    if (FILE* file = std::fopen(path, "a")) {
      std::fprintf(file, "%ld\n", calls.load());
      std::fclose(file);
    }
  }
} count_writer;

bool is_watched(const char* path) {
  return plan().under == nullptr || (path != nullptr && std::strstr(path, plan().under) != nullptr);
}

bool is_watched(int file) {
  if (plan().under == nullptr) return true;
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t count = readlink(link, path, sizeof path - 1);
  if (count < 0) return false;
  path[count] = '\0';
  return is_watched(path);
}

/// True when the call must fail; errno is set. Does not return when it must not.
template <class Place>
bool strikes(Place place) {
  if (!is_watched(place)) return false;
  const long call = ++calls;
  const Plan& p = plan();
  if (p.clock || p.at == 0 || call < p.at || (call > p.at && !p.all_later)) return false;
  if (p.kills) kill(getpid(), SIGKILL);
  errno = p.error;
  return true;
}

/// Calls that no signal interrupts (POSIX lists no EINTR for them) fail in other ways only.
bool strikes_folder(const char* path) {
  return plan().error != EINTR && strikes(path);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, size_t bytes) {
  static auto* real = next<decltype(write)>("write");
  return file > 2 && strikes(file) ? -1 : real(file, data, bytes);
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  static auto* real = next<decltype(pwrite)>("pwrite");
  return strikes(file) ? -1 : real(file, data, bytes, offset);
}

ssize_t pwrite64(int file, const void* data, size_t bytes, off64_t offset) {
  static auto* real = next<decltype(pwrite64)>("pwrite64");
  return strikes(file) ? -1 : real(file, data, bytes, offset);
}

int fsync(int file) {
  static auto* real = next<decltype(fsync)>("fsync");
  return strikes(file) ? -1 : real(file);
}

int ftruncate(int file, off_t size) noexcept {
  static auto* real = next<int(int, off_t)>("ftruncate");
  return strikes(file) ? -1 : real(file, size);
}

int ftruncate64(int file, off64_t size) noexcept {
  static auto* real = next<int(int, off64_t)>("ftruncate64");
  return strikes(file) ? -1 : real(file, size);
}

int rename(const char* from, const char* to) noexcept {
  static auto* real = next<int(const char*, const char*)>("rename");
  return strikes_folder(to) ? -1 : real(from, to);
}

int link(const char* from, const char* to) noexcept {
  static auto* real = next<int(const char*, const char*)>("link");
  return strikes_folder(to) ? -1 : real(from, to);
}

int unlink(const char* path) noexcept {
  static auto* real = next<int(const char*)>("unlink");
  return strikes_folder(path) ? -1 : real(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* real = next<int(const char*, mode_t)>("mkdir");
  return strikes_folder(path) ? -1 : real(path, mode);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static auto* real = next<int(clockid_t, timespec*)>("clock_gettime");
  const int result = real(clock, time);
  const bool steps = plan().clock && calls.load() >= plan().at;
  if (clock == CLOCK_REALTIME && result == 0 && steps) time->tv_sec -= 3600 * ++looks;
  return result;
}

int open(const char* path, int flags, ...) {
  static auto* real = next<int(const char*, int, ...)>("open");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const bool changes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
  return changes && strikes(path) ? -1 : real(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  static auto* real = next<int(const char*, int, ...)>("open64");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const bool changes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
  return changes && strikes(path) ? -1 : real(path, flags, mode);
}

}  // extern "C"
