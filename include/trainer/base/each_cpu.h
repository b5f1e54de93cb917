#pragma once

// TRAINER_FOR_EACH_CPU("avx512f", "avx2") before a function compiles it also for processors with
// each of these instruction sets, and the program selects the version that fits when it starts. A
// function that it calls is compiled this way only if it is inlined. The macro does nothing on
// other processors than x86-64, and under ThreadSanitizer, which is not ready yet when the version
// is selected.
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
