#pragma once

// Before a function: it is compiled for processors with each of these instruction sets as well, and
// the one that fits is taken when the program starts, e.g. TRAINER_FOR_EACH_CPU("avx512f", "avx2").
// What it calls is so only where it is inlined. Nothing on other processors, and under
// ThreadSanitizer, which is not ready yet when the choice is made.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TRAINER_HAS_NO_CLONES
#endif
#endif
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(TRAINER_HAS_NO_CLONES)
#define TRAINER_FOR_EACH_CPU(...) __attribute__((target_clones(__VA_ARGS__, "default")))
#else
#define TRAINER_FOR_EACH_CPU(...)
#endif
