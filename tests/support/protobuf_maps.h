#pragma once
// Skips tests that read JSON in programs built with ThreadSanitizer.

#include <gtest/gtest.h>

// Protobuf's maps have another layout in code compiled with ThreadSanitizer than in libprotobuf,
// which fills them when it parses JSON.
#if defined(__SANITIZE_THREAD__)
#define TRAINER_READS_JSON() GTEST_SKIP() << "libprotobuf is not compiled with ThreadSanitizer"
#else
#define TRAINER_READS_JSON() static_cast<void>(0)
#endif
