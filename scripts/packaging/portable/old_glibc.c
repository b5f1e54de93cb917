// What Debian 12's archives and GCC 12's library ask of the C library that glibc 2.28 does not have;
// scripts/packaging/portable.sh links it into the program that is carried to other systems.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// glibc 2.32. Zero: libstdc++ counts references with atomic operations from the beginning.
char __libc_single_threaded = 0;

// glibc 2.36; libstdc++ has it for std::random_device.
uint32_t arc4random(void) {
  uint32_t value;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}

// glibc 2.30: waits until a time of CLOCK_MONOTONIC, too. Without it, as libstdc++ does when it knows
// no such call: until the time of day that is as far away. Callers look at their clock again.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  typedef int (*Wait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  const Wait wait = (Wait)dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  if (wait != NULL) return wait(condition, mutex, clock, until);
  struct timespec now, day;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &day);
  const long second = 1000000000;
  const long nanoseconds = day.tv_nsec + until->tv_nsec - now.tv_nsec + second;
  day.tv_sec += until->tv_sec - now.tv_sec + nanoseconds / second - 1;
  day.tv_nsec = nanoseconds % second;
  return pthread_cond_timedwait(condition, mutex, &day);
}
