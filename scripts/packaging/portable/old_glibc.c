// Defines what the static libraries of Debian 12 and GCC 12 need and glibc 2.28 does not have.
// scripts/packaging/portable.sh links it into the program.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// glibc 2.32 has it. 0 makes libstdc++ use atomic operations from the start.
char __libc_single_threaded = 0;

// glibc 2.36 has it. libstdc++ calls it for std::random_device.
uint32_t arc4random(void) {
  uint32_t value;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}

typedef int (*Wait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
static Wait clockwait;
__attribute__((constructor)) static void FindClockWait(void) {
  clockwait = (Wait)dlsym(RTLD_NEXT, "pthread_cond_clockwait");
}

// glibc 2.30 has it: a wait that ends at a time of any clock. On older systems the wait ends at the
// time of day that is equally far away, which is how libstdc++ waits there. Callers check their own
// clock afterwards.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  if (clockwait != NULL) return clockwait(condition, mutex, clock, until);
  struct timespec now, day;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &day);
  const long second = 1000000000;
  const long nanoseconds = day.tv_nsec + until->tv_nsec - now.tv_nsec + second;
  day.tv_sec += until->tv_sec - now.tv_sec + nanoseconds / second - 1;
  day.tv_nsec = nanoseconds % second;
  return pthread_cond_timedwait(condition, mutex, &day);
}
